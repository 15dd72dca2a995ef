// The size of a model, as benchmarks are told it.
#pragma once

#include <string>

#include "bench/arguments.h"
#include "model/roberta.h"

namespace tupelo::bench {

// From --vocab, --hidden, --layers, --heads, --tokens and --dropout; without positions.
inline ModelOptions model_size(const Arguments& arguments) {
  ModelOptions options;
  options.vocab_size = arguments.number("--vocab");
  options.hidden_size = arguments.number("--hidden");
  options.layers = arguments.number("--layers");
  options.heads = arguments.number("--heads");
  options.intermediate_size = 4 * options.hidden_size;
  options.max_positions = arguments.number("--tokens");
  options.dropout = options.attention_dropout = std::stod(arguments.text("--dropout"));
  return options;
}

}  // namespace tupelo::bench
