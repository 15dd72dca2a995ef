#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "launcher/agreement.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/evaluation.h"
#include "launcher/length_evaluation.h"
#include "launcher/nearest_name.h"
#include "launcher/probe_report.h"
#include "launcher/saved_model.h"
#include "launcher/session.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

struct EvalSettings {
  std::string run, corpus, device, probe;
  std::int64_t step = 0, rows = 0, threads = 0;
  LengthSettings by_length;
};

EvalSettings settings_from(const CommandLine& line) {
  const auto integer = [&](const std::string& name, const std::string& fallback, std::int64_t least,
                           std::int64_t most) {
    return reading_option(name,
                          [&] { return parse_integer(line.value(name, fallback), least, most); });
  };
  EvalSettings settings;
  settings.run = line.required("run");
  settings.corpus = line.value("corpus");
  settings.device = reading_option("device", [&] {
    return one_of(line.value("device", "auto"), {"auto", "cpu", "cuda"});
  });
  settings.probe = line.value("probe");
  settings.step = integer("step", "0", 0, INT64_MAX);
  settings.rows = integer("rows", std::to_string(INT64_C(1) << 40), 1, INT64_MAX);
  settings.threads = integer("threads", "0", 0, 4096);
  settings.by_length = length_settings(line);
  return settings;
}

ShardedCorpus open_held_out(const EvalSettings& settings, const SavedModel& saved) {
  const std::string folder = settings.corpus.empty() ? saved.state.corpus : settings.corpus;
  ShardedCorpus corpus(folder, Split::kHeldOut);
  if (corpus.info().tokenizer_fingerprint != saved.state.tokenizer_fingerprint) {
    throw CorpusError("corpus " + folder + " was made with another vocabulary (" +
                      corpus.info().tokenizer_fingerprint.substr(0, 12) + "...) than the model (" +
                      saved.state.tokenizer_fingerprint.substr(0, 12) + "...)");
  }
  for (std::size_t shard = 0; shard < corpus.shards().size(); ++shard) corpus.verify_shard(shard);
  return corpus;
}

void print(const SavedModel& saved, const Evaluation& result, double entropy, bool as_json) {
  if (as_json) {
    std::cout << nlohmann::ordered_json{{"checkpoint", saved.folder},
                                        {"step", saved.state.step},
                                        {"loss", result.loss},
                                        {"perplexity", result.perplexity},
                                        {"masked_accuracy", result.masked_accuracy},
                                        {"masked_tokens", result.masked_tokens},
                                        {"rows", result.rows},
                                        {"tokens", result.tokens},
                                        {"unigram_entropy", entropy}}
                     .dump(1)
              << std::endl;
    return;
  }
  std::cout << "checkpoint        " << saved.folder << "\n"
            << "held-out loss     " << significant(result.loss, 5) << " nats per masked token\n"
            << "perplexity        " << significant(result.perplexity, 5) << "\n"
            << "masked accuracy   " << significant(100 * result.masked_accuracy, 4) << "% of "
            << grouped(result.masked_tokens) << " tokens\n"
            << "unigram entropy   " << significant(entropy, 5)
            << " nats (the loss of the best guess without context)\n"
            << "evaluated         " << grouped(result.rows) << " rows, " << grouped(result.tokens)
            << " tokens" << std::endl;
}

void print(const SavedModel& saved, const LengthSettings& settings,
           const std::vector<LengthResult>& results, double entropy, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json object = {{"checkpoint", saved.folder},
                                     {"step", saved.state.step},
                                     {"trained_length", saved.config.model.max_positions}};
    object.update(length_json(settings, results));
    object["unigram_entropy"] = entropy;
    std::cout << object.dump(1) << std::endl;
    return;
  }
  std::cout << "checkpoint        " << saved.folder << "\n"
            << "unigram entropy   " << significant(entropy, 5) << " nats\n"
            << length_table(results) << std::flush;
}

// Of one micro-batch of rows, or fewer.
void write_probe(SavedModel& saved, const ShardedCorpus& corpus, const EvalSettings& settings,
                 torch::Device device) {
  DataOptions data = saved.config.data;
  data.micro_batch = std::min(data.micro_batch, settings.rows);
  ProbeReport report;
  report.checkpoint = saved.folder;
  report.step = saved.state.step;
  report.probe = probe_held_out(*saved.model, corpus, data, device);
  report.gradient_norms = held_out_gradient_norms(*saved.model, corpus, data, device);
  write_probe_report(settings.probe, report);
}

ExitCode eval_in(Session& session, const CommandLine& line) {
  EvalSettings settings;
  Communicator& control = session.control();
  together(control, [&] { settings = settings_from(line); });
  if (!settings.probe.empty()) {
    on_rank_zero(control, [&] { check_probe_folder(settings.probe); });
  }
  session.configure(settings.device, static_cast<int>(settings.threads), 600);
  const std::vector<std::int64_t>& lengths = settings.by_length.lengths;
  SavedModel saved;
  std::shared_ptr<RobertaForMaskedLm> extended;
  std::optional<ShardedCorpus> corpus;
  together(control, [&] {
    saved = load_saved_model(settings.run, settings.step);
    corpus.emplace(open_held_out(settings, saved));
    saved.model->to(session.device());
    if (!lengths.empty()) extended = extended_model(saved, settings.by_length, session.device());
  });
  const bool as_json = line.has("json");
  if (!lengths.empty()) {
    const auto results = evaluate_lengths(saved, *extended, *corpus, lengths, settings.rows,
                                          session.device(), session.data());
    if (session.is_first()) {
      print(saved, settings.by_length, results, unigram_entropy(*corpus), as_json);
    }
  } else {
    const Evaluation result = evaluate(*saved.model, *corpus, saved.config.data, settings.rows,
                                       session.device(), session.data());
    if (session.is_first()) print(saved, result, unigram_entropy(*corpus), as_json);
  }
  if (!settings.probe.empty()) {
    on_rank_zero(control, [&] { write_probe(saved, *corpus, settings, session.device()); });
    Console(/*silent=*/!session.is_first() || as_json)
        .line("attention         " + settings.probe + "/index.html");
  }
  return ExitCode::kDone;
}

ExitCode run_eval(const Verb& verb, const std::vector<std::string>& words) {
  return in_session(verb, words, eval_in);
}

}  // namespace

Command eval_command() {
  Verb verb;
  verb.name = "eval";
  verb.usage =
      "[mpirun -np N] tupelo eval --run RUN [--corpus CORPUS] [--lengths T,T,... [--extend-policy "
      "NAME]] [--probe DIR] [--json]";
  verb.summary =
      "Measures a checkpoint on held-out documents. Masks are fixed by the corpus alone, so "
      "figures of "
      "different runs compare.";
  verb.options = {
      {"run", Takes::kOneValue, "RUN", "folder of the run"},
      {"corpus", Takes::kOneValue, "CORPUS", "another corpus with the same vocabulary"},
      {"step", Takes::kOneValue, "STEP", "checkpoint of this step (newest that verifies)"},
      {"rows", Takes::kOneValue, "COUNT", "held-out rows, at most (all)"},
      {"probe", Takes::kOneValue, "DIR",
       "write what attention scores are made of, over a micro-batch of the rows, to DIR/probe.json "
       "and "
       "DIR/index.html"},
      {"device", Takes::kOneValue, "DEVICE", "auto, cpu or cuda (auto)"},
      {"threads", Takes::kOneValue, "N", "computing threads (all cores)"},
      {"json", Takes::kNothing, "", "print JSON"}};
  for (const VerbOption& option : length_options()) verb.options.push_back(option);
  verb.options.push_back({"help", Takes::kNothing, "", "this text"});
  return {verb, run_eval};
}

}  // namespace tupelo
