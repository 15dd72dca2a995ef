// The parameters that a run trains, as one rank holds them: what the model computes with, what the
// optimizer updates, and how a checkpoint sees them.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoints/safetensors.h"
#include "distributed/gradient_reducer.h"
#include "distributed/parameter_shards.h"
#include "launcher/run_config.h"
#include "launcher/shard_groups.h"
#include "model/roberta.h"
#include "optim/optimizer.h"
#include "optim/slice_exchange.h"

namespace tupelo {

// Makes the parameters of `model` those of train.precision; they keep their names and roles.
void convert_parameters(RobertaForMaskedLm& model, const std::string& precision);

// Checkpoints hold whole tensors in full precision, whatever `options` say, so a run may go on
// under other ones. All ranks construct one, and call the same, together; the constructor
// communicates nothing.
class TrainedParameters : private SliceExchange {
 public:
  // Converts the parameters of `model`, which hold float32 values on their device, to
  // train.precision; the values live on in the masters. The groups' communicators and `model` must
  // outlive the object.
  TrainedParameters(RobertaForMaskedLm& model, const TrainOptions& options,
                    const ShardGroups& groups);
  ~TrainedParameters() override;

  GradientReducer& reducer() { return *reducer_; }
  // What is updated instead of the model's parameters: `groups` of those, with their masters.
  std::vector<ParameterGroup> masters(std::vector<ParameterGroup> groups) const;
  std::vector<NamedParameter> masters() const;
  // The masters' tensors of these parameters.
  std::vector<torch::Tensor> masters(const std::vector<std::string>& names) const;
  // For optimizers and norms of masters; none unless they are slices.
  SliceExchange* exchange() { return groups_.shards != nullptr ? this : nullptr; }
  // How many ranks hold a master together.
  int shard_count() const;
  // Divides the gradients of the masters.
  void divide_gradients(double divisor);
  // Once masters have changed: the model computes with them, each part of a forward pass as soon as
  // its parameters are there. Who reads parameters otherwise must wait().
  void publish() { shards_->publish(); }
  void wait() { shards_->wait(); }

  // Every parameter, by name, on rank 0; the others help and get nothing. Collective.
  NamedTensors gather_parameters() const;
  // The same for tensors that belong to masters, "PARAMETER" or "KIND.PARAMETER".
  NamedTensors gather(const NamedTensors& parts) const;

  // Throws std::invalid_argument unless `tensors` are whole ones for each of `parts`, by name and
  // shape, and no others; `what` is what they are for people. Not collective.
  void check_whole(const std::string& what, const NamedTensors& tensors,
                   const NamedTensors& parts) const;
  NamedTensors master_tensors() const;
  // Rank 0's `tensors`, which check_whole(), become the parameters of all ranks. Collective.
  void scatter_parameters(const NamedTensors& tensors);
  // The values with which rank 0's model came, for a run without a checkpoint. Once; collective.
  void scatter_initial();
  // The same for tensors that belong to masters, in place. Collective.
  void scatter(const NamedTensors& tensors, const NamedTensors& parts) const;
  // Forgets the initial values, which scatter_initial() does as well.
  void drop_initial() { initial_.clear(); }

  // Bytes on this rank.
  struct Memory {
    std::size_t parameters = 0, gradients = 0, masters = 0;
  };
  Memory memory() const;

 private:
  std::vector<double> sum(std::vector<double> values) override;
  torch::Tensor whole(const std::string& parameter, const torch::Tensor& part) override;
  torch::Tensor part(const std::string& parameter, const torch::Tensor& whole) override;

  // Before the model uses the parameters of `layer` (RobertaForMaskedLm::before_use).
  void wait_for_layer(std::int64_t layer);

  // The parameter to which tensor "PARAMETER" or "KIND.PARAMETER" belongs.
  std::size_t owner_of(const std::string& tensor) const;

  ShardGroups groups_;
  RobertaForMaskedLm& model_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> index_;  // in names_
  std::vector<torch::Tensor> parameters_;
  std::vector<std::vector<std::size_t>> of_layer_;  // from layer -1 on
  NamedTensors initial_;                            // rank 0, float32
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<ParameterShards> shards_;
};

}  // namespace tupelo
