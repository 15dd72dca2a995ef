#include "model/recompute_policy.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tupelo::recompute_policy_test {
namespace {

constexpr Recomputed kNo = Recomputed::kNothing, kAt = Recomputed::kAttention,
                     kFf = Recomputed::kFeedForward, kAll = Recomputed::kLayer;

std::vector<Recomputed> layers_of(const std::string& text, std::int64_t layers = 6) {
  return parse_recompute(text, layers, "recompute").layers;
}

std::string canonical(const std::string& text, std::int64_t layers = 6) {
  return parse_recompute(text, layers, "recompute").to_string();
}

std::string refusal(const std::string& text, std::int64_t layers = 6) {
  try {
    parse_recompute(text, layers, "model.recompute");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

using Layers = std::vector<Recomputed>;

TEST(RecomputePolicy, WordsHoldForEveryLayer) {
  EXPECT_EQ(layers_of("none", 2), (Layers{kNo, kNo}));
  EXPECT_EQ(layers_of("full", 2), (Layers{kAll, kAll}));
  EXPECT_EQ(layers_of("all", 2), (Layers{kAll, kAll}));
  EXPECT_EQ(layers_of("attention", 2), (Layers{kAt, kAt}));
  EXPECT_EQ(layers_of("ffn", 2), (Layers{kFf, kFf}));
}

TEST(RecomputePolicy, EveryKthLayerCountsFromOne) {
  EXPECT_EQ(layers_of("every-1"), Layers(6, kAll));
  EXPECT_EQ(layers_of("every-2"), (Layers{kNo, kAll, kNo, kAll, kNo, kAll}));
  EXPECT_EQ(layers_of("every-4"), (Layers{kNo, kNo, kNo, kAll, kNo, kNo}));
  EXPECT_EQ(layers_of("every-6"), (Layers{kNo, kNo, kNo, kNo, kNo, kAll}));
}

TEST(RecomputePolicy, ListsNameLayersAndHalves) {
  EXPECT_EQ(layers_of("0-1+4"), (Layers{kAll, kAll, kNo, kNo, kAll, kNo}));
  EXPECT_EQ(layers_of("0-1:attention,2:full,4:ffn"), (Layers{kAt, kAt, kAll, kNo, kFf, kNo}));
  EXPECT_EQ(layers_of("all:ffn", 2), (Layers{kFf, kFf}));
  EXPECT_EQ(layers_of("0:none,1+3:ffn,5"), (Layers{kNo, kFf, kNo, kFf, kNo, kAll}));
}

TEST(RecomputePolicy, TextIsCanonicalAndReadsBack) {
  EXPECT_EQ(canonical("all"), "full");
  EXPECT_EQ(canonical("0-5"), "full");
  EXPECT_EQ(canonical("0-2:ffn,3-5:ffn"), "ffn");
  EXPECT_EQ(canonical("0:none"), "none");
  EXPECT_EQ(canonical("every-3"), "2+5:full");
  EXPECT_EQ(canonical("5:ffn,3:full,0-1:attention,4:full"), "0-1:attention,3-4:full,5:ffn");
  EXPECT_EQ(canonical("auto:6GiB"), "auto:6442450944");
  for (const std::string text : {"none", "full", "attention", "ffn", "2+5:full",
                                 "0-1:attention,3-4:full,5:ffn", "auto:6442450944"}) {
    EXPECT_EQ(canonical(text), text);
  }
}

TEST(RecomputePolicy, BudgetsAreBytes) {
  const auto budget = [](const std::string& text) {
    const RecomputePolicy policy = parse_recompute(text, 2, "recompute");
    EXPECT_EQ(policy.layers, (Layers{kNo, kNo}));
    return policy.budget_bytes.value();
  };
  EXPECT_EQ(budget("auto:1"), 1);
  EXPECT_EQ(budget("auto:4096"), 4096);
  EXPECT_EQ(budget("auto:12B"), 12);
  EXPECT_EQ(budget("auto:3kB"), 3000);
  EXPECT_EQ(budget("auto:1.5MB"), 1'500'000);
  EXPECT_EQ(budget("auto:2GB"), 2'000'000'000);
  EXPECT_EQ(budget("auto:1TB"), 1'000'000'000'000);
  EXPECT_EQ(budget("auto:3KiB"), 3072);
  EXPECT_EQ(budget("auto:0.5MiB"), 524'288);
  EXPECT_EQ(budget("auto:6GiB"), std::int64_t{6} << 30);
  EXPECT_EQ(budget("auto:2TiB"), std::int64_t{2} << 40);
  EXPECT_FALSE(parse_recompute("full", 2, "recompute").budget_bytes.has_value());
}

TEST(RecomputePolicy, RefusalsSayWhatIsValid) {
  EXPECT_EQ(refusal("atention"),
            "model.recompute: 'atention' is no policy (did you mean 'attention'?); valid: none, "
            "full, attention, ffn, every-K (every-2), auto:BYTES (auto:6GiB) or layers "
            "(0-3:attention,4-7:full)");
  EXPECT_NE(refusal("").find("'' is no policy"), std::string::npos);
  EXPECT_NE(refusal("auto").find("no policy (did you mean 'auto:'?)"), std::string::npos);
  for (const std::string text : {"auto:", "auto:0", "auto:-5", "auto:6Gi", "auto:GiB", "auto:nan",
                                 "auto:inf", "auto:1e30", "auto:6 GiB", "auto:0.5"}) {
    EXPECT_NE(refusal(text).find("needs a number of bytes, such as auto:6GiB"), std::string::npos)
        << text << " " << refusal(text);
  }
  for (const std::string text : {"every-", "every-0", "every-7", "every--1", "every-2x"}) {
    EXPECT_NE(refusal(text).find("needs a whole number from 1 to 6, the number of layers"),
              std::string::npos)
        << text << " " << refusal(text);
  }
  EXPECT_NE(refusal("0:fnn").find("'0:fnn' needs one of none, full, attention and ffn behind the : "
                                  "(did you mean 'ffn'?)"),
            std::string::npos);
  EXPECT_NE(refusal("0:all").find("needs one of"), std::string::npos);
  EXPECT_NE(refusal("0:").find("needs one of"), std::string::npos);
  EXPECT_NE(refusal("0-2:ffn,2").find("layer 2 is named by more than one entry"),
            std::string::npos);
  EXPECT_NE(refusal("6:ffn").find("layer 6 does not exist; layers are 0 to 5"), std::string::npos);
  EXPECT_NE(refusal("0,").find("'' is no layer"), std::string::npos);
}

}  // namespace
}  // namespace tupelo::recompute_policy_test
