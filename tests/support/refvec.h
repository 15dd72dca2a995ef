// Reference vectors: exact inputs, outputs and gradients to hold our formulas to. The files and
// their meaning are described in tests/data/refvec/README.md.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tupelo {

// The folder with the vectors: $TUPELO_REFVEC when set, else tests/data/refvec of the source tree.
std::filesystem::path refvec_folder();

// Names of the cases in that folder, sorted: "adamw", "article", ...
std::vector<std::string> refvec_names();

// One case. Inputs and parameters come in the precision asked for; what results are compared with
// is always the float64 file. Reads whatever shapes and keys the files have.
class Refvec {
 public:
  // Throws std::system_error or CorruptCheckpoint when <name>.f64.safetensors, or for kFloat32
  // <name>.f32.safetensors, cannot be read.
  static Refvec load(const std::string& name, torch::ScalarType precision);

  const std::string& name() const { return name_; }
  torch::ScalarType precision() const { return precision_; }

  bool has(const std::string& key) const { return tensors_.count(key) > 0; }
  // The tensor of a full key ("in.mask", "param.pos.weight"); floating tensors in precision(), save
  // those the file stores as float64 in either precision. Throws std::out_of_range that names the
  // key.
  torch::Tensor tensor(const std::string& key) const;
  // Keys that begin with `prefix` ("param."), in alphabetic order, and what follows the prefix.
  std::vector<std::string> keys(const std::string& prefix) const;
  std::vector<std::string> names_after(const std::string& prefix) const;

  // The scalar settings cfg.<name>.
  std::int64_t integer(const std::string& setting) const;
  double number(const std::string& setting) const;
  // All settings, lists included.
  nlohmann::json config() const;

  // Holds `actual`, the result for key "out.*" or "grad.*", to the README's tolerance for
  // precision(); integer results must be equal. Shapes must be equal. NaN and infinity fail.
  testing::AssertionResult compare(const std::string& key, const torch::Tensor& actual) const;
  // max|actual - r| <= relative * max|r| over the tensor.
  testing::AssertionResult compare_to_scale(const std::string& key, const torch::Tensor& actual,
                                            double relative) const;
  // |actual - r| <= relative * |r| element by element.
  testing::AssertionResult compare_each(const std::string& key, const torch::Tensor& actual,
                                        double relative) const;

 private:
  Refvec() = default;
  const torch::Tensor& truth(const std::string& key) const;
  double tolerance(const std::string& key) const;
  double largest_of_kind(const std::string& key) const;

  std::string name_;
  torch::ScalarType precision_ = torch::kFloat64;
  std::map<std::string, torch::Tensor> tensors_;
  std::map<std::string, torch::Tensor> truth_;
  std::string config_;
};

}  // namespace tupelo
