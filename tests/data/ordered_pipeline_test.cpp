#include "data/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace tupelo::ordered_pipeline_test {
namespace {

// Produces 0, 1, ..., count - 1.
auto counting(int count) {
  return [count, next = 0](int& value) mutable {
    value = next++;
    return value < count;
  };
}

TEST(OrderedPipeline, KeepsTheOrderForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 4, 7}) {
    std::vector<int> results;
    ordered_pipeline<int>(
        threads, counting(500), [](int&& value) { return value * value; },
        [&](int&& square) { results.push_back(square); });
    ASSERT_EQ(results.size(), 500u);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], i * i);
  }
}

TEST(OrderedPipeline, HoldsFewPiecesAtATime) {
  std::atomic<int> alive = 0, most = 0;
  ordered_pipeline<int>(
      2,
      [&, next = 0](int& value) mutable {
        value = next++;
        if (value == 300) return false;
        most = std::max<int>(most, ++alive);
        return true;
      },
      [](int&& value) { return value; }, [&](int&&) { --alive; });
  EXPECT_LE(most, 5);
}

TEST(OrderedPipeline, RethrowsTheFirstFailureInOrder) {
  for (const int threads : {1, 4}) {
    int consumed = 0;
    const auto run = [&] {
      ordered_pipeline<int>(
          threads, counting(100),
          [](int&& value) {
            if (value >= 20) throw std::runtime_error("piece " + std::to_string(value));
            return value;
          },
          [&](int&&) { ++consumed; });
    };
    try {
      run();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "piece 20");
    }
    EXPECT_EQ(consumed, 20);
  }
}

TEST(OrderedPipeline, AFailureBeforeTheProducersWins) {
  const auto run = [](int bad) {
    ordered_pipeline<int>(
        3,
        [next = 0](int& value) mutable {
          value = next++;
          if (value == 5) throw std::logic_error("producer");
          return true;
        },
        [bad](int&& value) {
          if (value == bad) throw std::runtime_error("piece");
          return value;
        },
        [](int&&) {});
  };
  EXPECT_THROW(run(2), std::runtime_error);
  EXPECT_THROW(run(-1), std::logic_error);
}

TEST(OrderedPipeline, AConsumersFailureEndsIt) {
  EXPECT_THROW(ordered_pipeline<int>(
                   2, counting(100), [](int&& value) { return value; },
                   [](int&& value) {
                     if (value == 10) throw std::runtime_error("full");
                   }),
               std::runtime_error);
}

}  // namespace
}  // namespace tupelo::ordered_pipeline_test
