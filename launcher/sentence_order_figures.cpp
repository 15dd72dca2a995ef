#include "launcher/sentence_order_figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/console.h"
#include "launcher/value_text.h"

namespace tupelo {

SentenceOrderFigures sentence_order_figures(double loss_sum, double correct, double pairs,
                                            double rows) {
  const double count = std::max(pairs, 1.0);
  return {loss_sum / count, correct / count, static_cast<std::int64_t>(pairs),
          static_cast<std::int64_t>(rows)};
}

nlohmann::ordered_json sentence_order_json(const SentenceOrderFigures& figures,
                                           const std::string& prefix) {
  nlohmann::ordered_json object = {{prefix + "sop_loss", nullptr},
                                   {prefix + "sop_accuracy", nullptr},
                                   {prefix + "sop_pairs", figures.pairs},
                                   {prefix + "sop_unpaired_rows", figures.rows - figures.pairs}};
  if (figures.pairs > 0) {
    object[prefix + "sop_loss"] = figures.loss;
    object[prefix + "sop_accuracy"] = figures.accuracy;
  }
  return object;
}

std::string sentence_order_text(const SentenceOrderFigures& figures) {
  if (figures.pairs == 0) return "none";
  return significant(figures.loss, 4) + "  order " + significant(100 * figures.accuracy, 3) + "%";
}

}  // namespace tupelo
