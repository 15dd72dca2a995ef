// How well a model tells the order of the two segments of rows.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tupelo {

struct SentenceOrderFigures {
  double loss = 0;  // mean over pairs, natural logarithm; 0 without any
  double accuracy = 0;
  std::int64_t pairs = 0;
  std::int64_t rows = 0;  // pairs or not
};

// From sums over pairs.
SentenceOrderFigures sentence_order_figures(double loss_sum, double correct, double pairs,
                                            double rows);

// "sop_loss", "sop_accuracy" (both null without pairs), "sop_pairs", "sop_unpaired_rows", each
// behind `prefix`.
nlohmann::ordered_json sentence_order_json(const SentenceOrderFigures& figures,
                                           const std::string& prefix = "");
// "0.5123  order 74.2%"
std::string sentence_order_text(const SentenceOrderFigures& figures);

}  // namespace tupelo
