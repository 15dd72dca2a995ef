#include "distributed/communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tupelo {
namespace {

// Page-locked, or else the host would wait until the device has done all that it was given.
torch::Tensor moved(const torch::Tensor& tensor, torch::Device device) {
  return device.is_cuda() ? tensor.pin_memory().to(device, /*non_blocking=*/true) : tensor;
}

}  // namespace

std::vector<double> Communicator::sum(std::vector<double> values) {
  auto tensor = moved(torch::tensor(values, torch::kFloat64), device());
  all_reduce(tensor)->wait();
  const auto result = tensor.cpu();
  check_health();
  std::copy_n(result.const_data_ptr<double>(), values.size(), values.begin());
  return values;
}

double Communicator::sum(double value) { return sum(std::vector<double>{value}).front(); }

double Communicator::max(double value) {
  auto tensor = torch::full({1}, value, torch::TensorOptions(torch::kFloat64).device(device()));
  all_reduce(tensor, ReduceOp::kMax)->wait();
  const auto result = tensor.item<double>();
  check_health();
  return result;
}

std::uint64_t Communicator::sum(std::uint64_t value) {
  // Two's complement: the bits of a wrapping signed sum are those of the unsigned one.
  auto tensor = torch::full({1}, static_cast<std::int64_t>(value),
                            torch::TensorOptions(torch::kInt64).device(device()));
  all_reduce(tensor)->wait();
  const auto result = static_cast<std::uint64_t>(tensor.item<std::int64_t>());
  check_health();
  return result;
}

bool Communicator::any(bool value) {
  auto tensor =
      torch::full({1}, value ? 1 : 0, torch::TensorOptions(torch::kInt32).device(device()));
  all_reduce(tensor, ReduceOp::kMax)->wait();
  const auto result = tensor.item<std::int32_t>() != 0;
  check_health();
  return result;
}

bool Communicator::all_agree(bool value) { return !any(!value); }

std::string Communicator::broadcast(std::string text, int root) {
  auto length = torch::full({1}, static_cast<std::int64_t>(text.size()),
                            torch::TensorOptions(torch::kInt64).device(device()));
  broadcast(length, root)->wait();
  const auto size = length.item<std::int64_t>();
  check_health();
  auto bytes = torch::zeros({size}, torch::kUInt8);
  if (rank() == root) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  bytes = moved(bytes, device());
  broadcast(bytes, root)->wait();
  bytes = bytes.cpu();
  check_health();
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(size)};
}

}  // namespace tupelo
