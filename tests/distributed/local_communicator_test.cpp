// What goes wrong in a world of threads, and that nobody hangs.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/distributed/threads_as_ranks.h"

namespace tupelo {
namespace {

using testing::run_ranks;

constexpr CommunicatorOptions kShort{.timeout = std::chrono::milliseconds(100)};
constexpr CommunicatorOptions kLong{.timeout = std::chrono::minutes(30)};

template <typename Error>
std::string message_of(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in \"" << text << "\"";
}

TEST(LocalCommunicator, ATimeoutNamesTheMissingRanksOnAllThatWaited) {
  auto world = make_local_world(4, kShort);
  std::vector<std::string> messages(4);
  std::vector<std::thread> threads;
  for (const int rank : {0, 2}) {
    threads.emplace_back([&, rank] {
      auto tensor = torch::zeros({5});
      try {
        world[rank]->all_reduce(tensor)->wait();
      } catch (const CommunicationTimeout& timeout) {
        messages[rank] = timeout.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int rank : {0, 2}) {
    expect_contains(messages[rank],
                    "local all_reduce(sum) of 5 Float #0 on rank " + std::to_string(rank));
    expect_contains(messages[rank], "ranks 1, 3 did not join within 100 ms");
  }
  EXPECT_THROW(world[1]->barrier(), CommunicationTimeout) << "the world is dead for latecomers";
  EXPECT_THROW(world[0]->sum(1.0), CommunicationTimeout);
}

TEST(LocalCommunicator, WhatFinishedBeforeATimeoutStaysFinished) {
  auto world = make_local_world(2, kShort);
  auto a = torch::ones({3});
  auto b = torch::ones({3});
  const auto first = world[0]->all_reduce(a);
  const auto late = world[0]->all_reduce(torch::ones({3}));
  EXPECT_FALSE(first->is_completed());
  const auto other = world[1]->all_reduce(b);
  EXPECT_TRUE(first->is_completed());
  EXPECT_FALSE(late->is_completed());
  EXPECT_THROW(late->wait(), CommunicationTimeout);
  first->wait();
  other->wait();
  EXPECT_EQ(a.sum().item<double>(), 6);
}

TEST(LocalCommunicator, ARankThatThrowsDoesNotLeaveTheOthersWaiting) {
  const auto failures = run_ranks(
      3,
      [](Communicator& communicator) {
        communicator.barrier();
        if (communicator.rank() == 1) throw std::logic_error("out of luck");
        communicator.sum(1.0);
      },
      kLong);
  EXPECT_EQ(message_of<std::logic_error>(failures[1]), "out of luck");
  for (const int rank : {0, 2}) {
    expect_contains(message_of<CommunicationError>(failures[rank]), "rank 1 left the world");
  }
}

TEST(LocalCommunicator, ARankMayLeaveOnceAllItOwesIsDone) {
  for (const auto& failure : run_ranks(
           4, [](Communicator& communicator) { EXPECT_EQ(communicator.sum(1.0), 4); }, kLong)) {
    EXPECT_FALSE(failure);
  }
}

TEST(LocalCommunicator, DifferentCollectivesAreToldApart) {
  const auto failures = run_ranks(
      2,
      [](Communicator& communicator) {
        communicator.all_reduce(torch::zeros({communicator.rank() == 0 ? 4 : 5}))->wait();
      },
      kLong);
  for (const auto& failure : failures) {
    const auto message = message_of<CommunicationError>(failure);
    expect_contains(message, "ranks issue different collectives");
    expect_contains(message, "all_reduce(sum) of 4 Float");
    expect_contains(message, "all_reduce(sum) of 5 Float");
  }
}

TEST(LocalCommunicator, AWorldOfOneIsDoneAtOnce) {
  const auto world = make_local_world(1);
  ASSERT_EQ(world.size(), 1u);
  const auto tensor = torch::ones({3});
  EXPECT_TRUE(world[0]->all_reduce(tensor)->is_completed());
  EXPECT_EQ(world[0]->backend(), "local");
  EXPECT_EQ(world[0]->world_size(), 1);
}

TEST(LocalCommunicator, AWorldOfNoneIsRefused) { EXPECT_THROW(make_local_world(0), c10::Error); }

}  // namespace
}  // namespace tupelo
