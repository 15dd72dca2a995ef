// What a run trains on any number of ranks: one matrix of worlds, shards and precisions.
#include "launcher/trained_parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>

#include "launcher/model_parameters.h"
#include "tests/distributed/threads_as_ranks.h"

namespace tupelo::trained_parameters_test {
namespace {

ModelOptions tiny_options() {
  ModelOptions options;
  options.vocab_size = 20;
  options.hidden_size = 8;
  options.layers = 2;
  options.heads = 2;
  options.intermediate_size = 12;
  options.max_positions = 10;
  options.position = "0:none,1:tupe-r";
  return options;
}

// A rank of a run: model, what is trained of it, and an optimizer.
struct Rank {
  Rank(const ShardGroups& groups, const TrainOptions& train, const OptimizerOptions& optim,
       std::uint64_t seed)
      : model(tiny_options()) {
    model.initialize(seed);
    trained = std::make_unique<TrainedParameters>(model, train, groups);
    UpdateOptions update;
    update.optimizer = optim;
    update.weight_decay = 0.1;
    optimizer = make_optimizer(optim, trained->masters(parameter_groups(model, update, 0)),
                               trained->exchange());
  }

  // Gradients that depend on the values, the step and the rank; sums over ranks do not depend on
  // how many there are.
  void step(const Communicator& communicator, std::int64_t number, double max_norm = 0) {
    trained->reducer().zero();
    const double share = 1.0 / communicator.world_size();
    torch::Tensor loss = torch::zeros({}, torch::kFloat64);
    for (const torch::Tensor& parameter : model.parameters()) {
      loss =
          loss + (parameter.to(torch::kFloat64) * static_cast<double>(number)).sin().sum() * share;
    }
    loss.backward();
    trained->reducer().finish();
    std::vector<std::string> names;
    for (const auto& parameter : model.named_parameters()) names.push_back(parameter.key());
    norm = clip_global_norm(trained->masters(names), max_norm, trained->exchange());
    optimizer->step(1e-2, number);
    trained->publish();
    trained->wait();
  }

  RobertaForMaskedLm model;
  std::unique_ptr<TrainedParameters> trained;
  std::unique_ptr<Optimizer> optimizer;
  double norm = 0;
};

struct World {
  int size;
  const char* shards;
};

std::vector<World> worlds() {
  std::vector<World> all;
  for (const int size : {1, 2, 3, 4}) {
    for (const char* shards : {"none", "world"}) all.push_back({size, shards});
  }
  all.push_back({4, "node"});
  return all;
}

constexpr int kRanksOfNode = 2;

TrainOptions train_options(const World& world, const std::string& precision) {
  TrainOptions options;
  options.shard_optimizer = world.shards;
  options.precision = precision;
  options.bucket_bytes = 512;
  return options;
}

// Every rank has a thread, and communicators with its node and with its peers on other nodes.
void on_ranks(const World& world, const std::function<void(const ShardGroups&)>& body) {
  const bool by_node = std::string(world.shards) == "node";
  const int nodes = by_node ? world.size / kRanksOfNode : 1, ranks_of_node = world.size / nodes;
  std::vector<std::vector<std::unique_ptr<Communicator>>> neighbours, peers;
  for (int node = 0; node < nodes; ++node) neighbours.push_back(make_local_world(ranks_of_node));
  for (int place = 0; place < ranks_of_node; ++place) peers.push_back(make_local_world(nodes));
  const auto failures = testing::run_ranks(world.size, [&](Communicator& communicator) {
    const auto node = static_cast<std::size_t>(communicator.rank() / ranks_of_node);
    const auto place = static_cast<std::size_t>(communicator.rank() % ranks_of_node);
    ShardGroups groups{communicator};
    if (by_node) {
      groups.shards = neighbours[node][place].get();
      groups.replicas = peers[place][node].get();
    } else if (std::string(world.shards) == "world" && world.size > 1) {
      groups.shards = &communicator;
    }
    body(groups);
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

OptimizerOptions optimizer_of(const std::string& name) {
  OptimizerOptions options;
  options.name = name;
  return options;
}

struct Saved {
  NamedTensors parameters, state;
  double norm = 0;
};

NamedTensors copies(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result.emplace_back(name, tensor.clone());
  return result;
}

// Rank 0's view of a run that takes `from` up, or begins anew, and makes `steps` more.
Saved run(const World& world, const std::string& precision, const std::string& optimizer,
          const Saved* from, std::int64_t first, std::int64_t steps, double max_norm = 0) {
  Saved saved;
  on_ranks(world, [&](const ShardGroups& groups) {
    Communicator& communicator = groups.world;
    // Only rank 0 begins with what counts.
    Rank rank(groups, train_options(world, precision), optimizer_of(optimizer),
              communicator.rank() == 0 ? 3 : 99);
    if (from == nullptr) {
      rank.trained->scatter_initial();
    } else {
      const bool has = communicator.rank() == 0;
      rank.trained->scatter_parameters(has ? from->parameters : NamedTensors());
      rank.trained->scatter(has ? from->state : NamedTensors(), rank.optimizer->state());
    }
    for (std::int64_t number = first; number < first + steps; ++number) {
      rank.step(communicator, number, max_norm);
    }
    const NamedTensors parameters = rank.trained->gather_parameters();
    const NamedTensors state = rank.trained->gather(rank.optimizer->state());
    if (communicator.rank() != 0) {
      EXPECT_TRUE(parameters.empty() && state.empty());
      return;
    }
    saved = {copies(parameters), copies(state), rank.norm};
  });
  return saved;
}

void expect_equal(const NamedTensors& left, const NamedTensors& right) {
  const std::map<std::string, torch::Tensor> others(right.begin(), right.end());
  ASSERT_EQ(left.size(), others.size());
  for (const auto& [name, tensor] : left) EXPECT_TRUE(tensor.equal(others.at(name))) << name;
}

void expect_near(const NamedTensors& left, const NamedTensors& right, double tolerance) {
  const std::map<std::string, torch::Tensor> others(right.begin(), right.end());
  ASSERT_EQ(left.size(), others.size());
  for (const auto& [name, tensor] : left) {
    const double worst = (tensor - others.at(name)).abs().max().item<double>();
    EXPECT_LE(worst, tolerance) << name;
  }
}

TEST(TrainedParameters, WhatOneWorldSavesAnyOtherLoadsBitForBit) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    for (const World& before : worlds()) {
      const Saved saved = run(before, precision, "adamw", nullptr, 1, 2);
      EXPECT_GT(saved.state.size(), saved.parameters.size());
      for (const World& after : worlds()) {
        SCOPED_TRACE(
            c10::str(precision, " ", before.size, before.shards, " ", after.size, after.shards));
        const Saved again = run(after, precision, "adamw", &saved, 3, 0);
        expect_equal(saved.parameters, again.parameters);
        expect_equal(saved.state, again.state);
      }
    }
  }
}

TEST(TrainedParameters, SlicesOfElementwiseOptimizersChangeNoBit) {
  for (const char* optimizer : {"adamw", "lion"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      for (const int size : {1, 2, 3, 4}) {
        SCOPED_TRACE(c10::str(optimizer, " ", precision, " ", size));
        const Saved whole = run({size, "none"}, precision, optimizer, nullptr, 1, 4);
        const Saved slices = run({size, "world"}, precision, optimizer, nullptr, 1, 4);
        expect_equal(whole.parameters, slices.parameters);
        expect_equal(whole.state, slices.state);
      }
    }
  }
}

TEST(TrainedParameters, OptimizersThatLookAtWholeTensorsSeeThemInSlices) {
  for (const char* optimizer : {"lamb", "stable-adamw", "muon"}) {
    for (const int size : {2, 3, 4}) {
      SCOPED_TRACE(c10::str(optimizer, " ", size));
      const Saved whole = run({size, "none"}, "fp32", optimizer, nullptr, 1, 4);
      const Saved slices = run({size, "world"}, "fp32", optimizer, nullptr, 1, 4);
      expect_near(whole.parameters, slices.parameters, 2e-6);
      expect_near(whole.state, slices.state, 2e-6);
    }
  }
}

TEST(TrainedParameters, NormsAndClippingAreThoseOfTheWhole) {
  const Saved alone = run({1, "none"}, "fp32", "adamw", nullptr, 1, 3, 0.25);
  EXPECT_GT(alone.norm, 0.25);
  for (const World& world : worlds()) {
    SCOPED_TRACE(c10::str(world.size, world.shards));
    const Saved other = run(world, "fp32", "adamw", nullptr, 1, 3, 0.25);
    EXPECT_NEAR(other.norm, alone.norm, 1e-5 * alone.norm);
    expect_near(alone.parameters, other.parameters, 5e-6);
  }
}

TEST(TrainedParameters, SixteenBitsAreRoundedMasters) {
  on_ranks({3, "world"}, [](const ShardGroups& groups) {
    Communicator& communicator = groups.world;
    Rank rank(groups, train_options({3, "world"}, "bf16"), optimizer_of("adamw"), 3);
    rank.trained->scatter_initial();
    rank.step(communicator, 1);
    const NamedTensors masters = rank.trained->gather_parameters();
    if (communicator.rank() != 0) return;
    const auto parameters = rank.model.named_parameters();
    for (const auto& [name, master] : masters) {
      EXPECT_EQ(parameters[name].scalar_type(), torch::kBFloat16);
      EXPECT_EQ(master.scalar_type(), torch::kFloat32);
      EXPECT_TRUE(parameters[name].equal(master.to(torch::kBFloat16))) << name;
    }
  });
}

TEST(TrainedParameters, NodesThatShareAmongThemselvesComputeWhatOthersDo) {
  for (const char* optimizer : {"adamw", "lamb", "muon"}) {
    SCOPED_TRACE(optimizer);
    const Saved whole = run({4, "none"}, "fp32", optimizer, nullptr, 1, 4, 0.25);
    const Saved nodes = run({4, "node"}, "fp32", optimizer, nullptr, 1, 4, 0.25);
    EXPECT_NEAR(whole.norm, nodes.norm, 1e-5 * whole.norm);
    expect_near(whole.parameters, nodes.parameters, 5e-6);
    expect_near(whole.state, nodes.state, 5e-6);
  }
}

TEST(TrainedParameters, GroupsOfHosts) {
  const std::vector<std::string> hosts = {"a", "b", "a", "b"};
  const NodeGroups groups = node_groups({0, 1, 0, 1}, hosts, 3);
  EXPECT_EQ(groups.neighbours, (std::vector<int>{1, 3}));
  EXPECT_EQ(groups.peers, (std::vector<int>{2, 3}));
  try {
    node_groups({0, 1, 0}, {"a", "b", "a"}, 0);
    ADD_FAILURE();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("a runs 2 and b 1"), std::string::npos)
        << error.what();
  }
}

TEST(TrainedParameters, MemoryOfARankShrinksWithTheWorld) {
  for (const int size : {1, 2, 4}) {
    on_ranks({size, "world"}, [&](const ShardGroups& groups) {
      Rank rank(groups, train_options({size, "world"}, "bf16"), optimizer_of("adamw"), 3);
      std::size_t elements = 0;
      for (const torch::Tensor& parameter : rank.model.parameters()) elements += parameter.numel();
      const TrainedParameters::Memory memory = rank.trained->memory();
      EXPECT_EQ(memory.parameters, 2 * elements);
      EXPECT_GE(memory.gradients, 4 * elements);
      EXPECT_EQ(memory.masters, memory.gradients / static_cast<std::size_t>(size));
    });
  }
}

TEST(TrainedParameters, TensorsThatDoNotFitAreRefused) {
  on_ranks({2, "world"}, [](const ShardGroups& groups) {
    Communicator& communicator = groups.world;
    Rank rank(groups, train_options({2, "world"}, "fp32"), optimizer_of("adamw"), 3);
    NamedTensors whole = copies(rank.trained->gather_parameters());
    if (communicator.rank() != 0) return;
    const TrainedParameters& trained = *rank.trained;
    const NamedTensors parts = trained.master_tensors();
    trained.check_whole("parameter", whole, parts);
    const auto refused = [&](const NamedTensors& tensors, const std::string& words) {
      try {
        trained.check_whole("parameter", tensors, parts);
        ADD_FAILURE() << "accepted: " << words;
      } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    };
    NamedTensors fewer(whole.begin() + 1, whole.end());
    refused(fewer, "has no parameter '" + whole.front().first + "'");
    NamedTensors more = whole;
    more.emplace_back("extra", torch::zeros({1}));
    refused(more, "'extra', which this model does not know");
    NamedTensors other = whole;
    other.front().second = torch::zeros({3});
    refused(other, "has shape [3] in the checkpoint");
  });
}

}  // namespace
}  // namespace tupelo::trained_parameters_test
