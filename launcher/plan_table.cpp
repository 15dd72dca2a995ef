#include "launcher/plan_table.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "launcher/console.h"
#include "launcher/text_table.h"

namespace tupelo {
namespace {

std::string whole(double number) { return grouped(std::llround(number)); }

std::string percent(double share) { return significant(100.0 * share, 3) + "%"; }

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

nlohmann::ordered_json path_json(const PathCost& cost) {
  return {{"path", attention_path_name(cost.path)}, {"kept_bytes_per_sequence", cost.kept_bytes}};
}

// What a layer spends once per step, in terms of its plain forward pass over one sequence.
double shared_share(const PlanReport& report, const PlanLayer& layer) {
  return layer.shared_flops / (report.layer_flops * static_cast<double>(report.tokens));
}

}  // namespace

std::string plan_table(const PlanReport& report) {
  TextTable table({"layer", "encoding<", "group", "parameters", "extra FLOP/token", "of a layer",
                   "FLOP once per step", "of a layer", "cpu<", "kept bytes/row", "cuda<",
                   "kept bytes/row"});
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const PlanLayer& layer = report.layers[i];
    table.add({std::to_string(i), layer.encoding,
               layer.group < 0 ? "-" : std::to_string(layer.group), grouped(layer.parameters),
               whole(layer.extra_flops), percent(layer.extra_flops / report.layer_flops),
               whole(layer.shared_flops), percent(shared_share(report, layer)),
               attention_path_name(layer.cpu.path), grouped(layer.cpu.kept_bytes),
               attention_path_name(layer.cuda.path), grouped(layer.cuda.kept_bytes)});
  }
  return table.text() + "input         " + report.input + ", " + grouped(report.input_parameters) +
         " parameters\n" + "mask decoder  " + report.mask_decoder + ", " +
         grouped(report.mask_decoder_parameters) + " parameters\n" + "total         " +
         grouped(report.position_parameters) + " position parameters, " +
         percent(share_of(report.position_parameters, report.parameters)) + " of " +
         grouped(report.parameters) + "\n" +
         "a plain layer's forward pass: " + whole(report.layer_flops) +
         " FLOP per token in rows of " + grouped(report.tokens) + " tokens\n";
}

nlohmann::ordered_json plan_json(const PlanReport& report) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const PlanLayer& layer = report.layers[i];
    layers.push_back({{"layer", i},
                      {"encoding", layer.encoding},
                      {"group", layer.group},
                      {"parameters", layer.parameters},
                      {"extra_flops_per_token", layer.extra_flops},
                      {"extra_share", layer.extra_flops / report.layer_flops},
                      {"flops_once_per_step", layer.shared_flops},
                      {"once_per_step_share", shared_share(report, layer)},
                      {"cpu", path_json(layer.cpu)},
                      {"cuda", path_json(layer.cuda)}});
  }
  return {{"kind", "plan"},
          {"tokens", report.tokens},
          {"plain_layer_flops_per_token", report.layer_flops},
          {"layers", layers},
          {"input", {{"encoding", report.input}, {"parameters", report.input_parameters}}},
          {"mask_decoder",
           {{"name", report.mask_decoder}, {"parameters", report.mask_decoder_parameters}}},
          {"position_parameters", report.position_parameters},
          {"position_share", share_of(report.position_parameters, report.parameters)},
          {"parameters", report.parameters}};
}

}  // namespace tupelo
