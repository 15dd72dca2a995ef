#include "tests/support/refvec.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "checkpoints/safetensors.h"

namespace tupelo {
namespace {

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

double largest(const torch::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0 : tensor.to(torch::kFloat64).abs().max().item<double>();
}

const torch::Tensor& look_up(const std::map<std::string, torch::Tensor>& tensors,
                             const std::string& key, const std::string& name) {
  const auto found = tensors.find(key);
  if (found == tensors.end()) {
    throw std::out_of_range("reference case '" + name + "' has no key '" + key + "'");
  }
  return found->second;
}

// Whether shapes agree and everything is finite: what any comparison needs first.
testing::AssertionResult comparable(const std::string& label, const torch::Tensor& expected,
                                    const torch::Tensor& actual) {
  if (!actual.defined()) {
    return testing::AssertionFailure() << label << ": the tensor is undefined";
  }
  if (actual.sizes() != expected.sizes()) {
    return testing::AssertionFailure()
           << label << ": shape " << actual.sizes() << " instead of " << expected.sizes();
  }
  if (actual.is_floating_point() && !actual.isfinite().all().item<bool>()) {
    return testing::AssertionFailure() << label << ": holds NaN or infinity";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult within(const std::string& label, const torch::Tensor& expected,
                                const torch::Tensor& actual, const torch::Tensor& tolerance) {
  if (const auto result = comparable(label, expected, actual); !result) return result;
  if (expected.numel() == 0) return testing::AssertionSuccess();
  const torch::Tensor values = actual.detach().to(torch::kCPU, torch::kFloat64);
  const torch::Tensor gap = (values - expected).abs();
  const torch::Tensor excess = (gap - tolerance).flatten();
  const std::int64_t worst = excess.argmax().item<std::int64_t>();
  if (excess[worst].item<double>() <= 0) return testing::AssertionSuccess();
  std::ostringstream text;
  text.precision(17);
  text << label << ": gap " << gap.flatten()[worst].item<double>() << " exceeds tolerance "
       << tolerance.expand_as(gap).flatten()[worst].item<double>() << " at flat index " << worst
       << " (" << values.flatten()[worst].item<double>() << " instead of "
       << expected.flatten()[worst].item<double>() << ")";
  return testing::AssertionFailure() << text.str();
}

testing::AssertionResult equal(const std::string& label, const torch::Tensor& expected,
                               const torch::Tensor& actual) {
  if (const auto result = comparable(label, expected, actual); !result) return result;
  if (actual.is_floating_point()) {
    return testing::AssertionFailure()
           << label << ": holds " << actual.scalar_type() << " where integers are expected";
  }
  const torch::Tensor differs = actual.to(torch::kCPU, torch::kInt64) != expected;
  const std::int64_t count = differs.sum().item<std::int64_t>();
  if (count == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << label << ": " << count << " of " << expected.numel()
                                     << " integers differ, the first at flat index "
                                     << differs.flatten().nonzero()[0].item<std::int64_t>();
}

std::filesystem::path case_file(const std::string& name, torch::ScalarType precision) {
  const char* suffix = precision == torch::kFloat64 ? ".f64" : ".f32";
  return refvec_folder() / (name + suffix + ".safetensors");
}

}  // namespace

std::filesystem::path refvec_folder() {
  const char* chosen = std::getenv("TUPELO_REFVEC");
  return chosen != nullptr && *chosen != '\0' ? chosen : TUPELO_REFVEC_FOLDER;
}

std::vector<std::string> refvec_names() {
  const std::string suffix = ".f64.safetensors";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(refvec_folder())) {
    const std::string file = entry.path().filename().string();
    if (file.size() > suffix.size() && file.ends_with(suffix)) {
      names.push_back(file.substr(0, file.size() - suffix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Refvec Refvec::load(const std::string& name, torch::ScalarType precision) {
  if (precision != torch::kFloat64 && precision != torch::kFloat32) {
    throw std::invalid_argument("reference vectors exist in float64 and float32 only");
  }
  Refvec loaded;
  loaded.name_ = name;
  loaded.precision_ = precision;
  SafetensorsFile truth = read_safetensors(case_file(name, torch::kFloat64));
  loaded.truth_ = std::move(truth.tensors);
  loaded.config_ = truth.metadata["config"];
  loaded.tensors_ = precision == torch::kFloat64
                        ? loaded.truth_
                        : read_safetensors(case_file(name, precision)).tensors;
  return loaded;
}

torch::Tensor Refvec::tensor(const std::string& key) const {
  return look_up(tensors_, key, name_).clone();
}

const torch::Tensor& Refvec::truth(const std::string& key) const {
  return look_up(truth_, key, name_);
}

std::vector<std::string> Refvec::keys(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [key, tensor] : tensors_) {
    if (starts_with(key, prefix)) found.push_back(key);
  }
  return found;
}

std::vector<std::string> Refvec::names_after(const std::string& prefix) const {
  std::vector<std::string> names = keys(prefix);
  for (std::string& name : names) name.erase(0, prefix.size());
  return names;
}

std::int64_t Refvec::integer(const std::string& setting) const {
  return truth("cfg." + setting).item<std::int64_t>();
}

double Refvec::number(const std::string& setting) const {
  return truth("cfg." + setting).item<double>();
}

nlohmann::json Refvec::config() const { return nlohmann::json::parse(config_); }

double Refvec::largest_of_kind(const std::string& key) const {
  const std::string kind = key.substr(0, key.find('.') + 1);
  double result = 0.0;
  for (const auto& [other, tensor] : truth_) {
    if (starts_with(other, kind) && tensor.is_floating_point()) {
      result = std::max(result, largest(tensor));
    }
  }
  return result;
}

double Refvec::tolerance(const std::string& key) const {
  const double own = largest(truth(key));
  if (precision_ == torch::kFloat64) return 1e-10 * std::max(1.0, own);
  const double scale = std::max(own, 1e-2 * largest_of_kind(key));
  return (starts_with(key, "grad.") ? 1e-4 : 2e-5) * scale;
}

testing::AssertionResult Refvec::compare(const std::string& key,
                                         const torch::Tensor& actual) const {
  const std::string label = name_ + "/" + key;
  const torch::Tensor& expected = truth(key);
  if (!expected.is_floating_point()) return equal(label, expected, actual);
  return within(label, expected, actual, torch::tensor(tolerance(key), torch::kFloat64));
}

testing::AssertionResult Refvec::compare_to_scale(const std::string& key,
                                                  const torch::Tensor& actual,
                                                  double relative) const {
  const torch::Tensor& expected = truth(key);
  const torch::Tensor tolerance = torch::tensor(relative * largest(expected), torch::kFloat64);
  return within(name_ + "/" + key, expected, actual, tolerance);
}

testing::AssertionResult Refvec::compare_each(const std::string& key, const torch::Tensor& actual,
                                              double relative) const {
  const torch::Tensor& expected = truth(key);
  return within(name_ + "/" + key, expected, actual, expected.abs() * relative);
}

}  // namespace tupelo
