// The forecast of a profile by hand, and the choice of a policy against all there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <stdexcept>

#include "model/activation_profile.h"

namespace tupelo::recompute_choice_test {
namespace {

constexpr Recomputed kParts[] = {Recomputed::kNothing, Recomputed::kAttention,
                                 Recomputed::kFeedForward, Recomputed::kLayer};

// Two layers of one group with numbers that are easy to add up.
ActivationProfile small_profile() {
  ActivationProfile profile;
  profile.embeddings = {1000, 50, 0, 0};
  profile.head = {500, 70, 0, 0};
  profile.replay_bytes = 1;
  profile.groups = {{20, 30}};
  LayerActivations layer;
  layer.group = 0;
  layer.input_bytes = 100;
  layer.attention = {400, 60, 5, 8.0};
  layer.feed_forward = {700, 40, 7, 16.0};
  profile.layers = {layer, layer};
  return profile;
}

TEST(ActivationForecast, AddsWhatIsKept) {
  const ActivationProfile profile = small_profile();
  const auto kept = [&](Recomputed first, Recomputed second) {
    return forecast(profile, {first, second}).kept_bytes;
  };
  const auto none = Recomputed::kNothing;
  EXPECT_EQ(kept(none, none), 1000 + 20 + 2 * 1100 + 500);
  EXPECT_EQ(kept(Recomputed::kAttention, none), 1000 + 30 + 101 + 700 + 1100 + 500);
  EXPECT_EQ(kept(Recomputed::kFeedForward, none), 1000 + 20 + 400 + 101 + 1100 + 500);
  EXPECT_EQ(kept(Recomputed::kLayer, Recomputed::kLayer), 1000 + 30 + 2 * 101 + 500);
  const ActivationForecast mixed = forecast(profile, {Recomputed::kAttention, Recomputed::kLayer});
  EXPECT_EQ(mixed.attention_bytes, (std::vector<std::int64_t>{101, 101}));
  EXPECT_EQ(mixed.feed_forward_bytes, (std::vector<std::int64_t>{700, 0}));
  EXPECT_EQ(mixed.shared_bytes, 30);
  EXPECT_EQ(mixed.recomputed_flops, 8.0 + 24.0);
}

TEST(ActivationForecast, PeaksWhereMostIsThere) {
  ActivationProfile profile = small_profile();
  const auto peak = [&](Recomputed both) { return forecast(profile, {both, both}).peak_bytes; };
  // At the head, while nothing is recomputed; at the last layer, when that comes back.
  EXPECT_EQ(peak(Recomputed::kNothing), 1000 + 20 + 2200 + 500 + 70);
  EXPECT_EQ(peak(Recomputed::kLayer), 1030 + 101 + 1 + 400 + 700 + 40 + 5 + 7);
  profile.head.working_bytes = 5000;
  EXPECT_EQ(peak(Recomputed::kLayer), 1030 + 202 + 500 + 5000);
  profile.word_table_bytes = 9000;  // once from the head on, twice at the embeddings
  EXPECT_EQ(peak(Recomputed::kLayer), 1030 + 50 + 2 * 9000);
}

TEST(ActivationForecast, CountsEveryApplicationUnderAMaskDecoder) {
  ActivationProfile profile = small_profile();
  profile.mask_decoder_bytes = 100;
  profile.layers[1].applications = 3;
  const std::vector<Recomputed> none(2, Recomputed::kNothing);
  EXPECT_EQ(forecast(profile, none).kept_bytes, 1000 + 100 + 20 + 4 * 1100 + 500);
  EXPECT_EQ(forecast(profile, none).attention_bytes[1], 3 * 400);
  EXPECT_EQ(forecast(profile, {Recomputed::kNothing, Recomputed::kLayer}).recomputed_flops, 72.0);
}

// Every assignment of parts to layers.
std::optional<double> least_work(const ActivationProfile& profile, std::int64_t budget) {
  std::size_t all = 1;
  for (std::size_t i = 0; i < profile.layers.size(); ++i) all *= std::size(kParts);
  std::optional<double> best;
  for (std::size_t number = 0; number < all; ++number) {
    std::vector<Recomputed> layers;
    for (std::size_t rest = number; layers.size() < profile.layers.size();
         rest /= std::size(kParts)) {
      layers.push_back(kParts[rest % std::size(kParts)]);
    }
    const ActivationForecast found = forecast(profile, layers);
    if (found.peak_bytes <= budget && (!best || found.recomputed_flops < *best)) {
      best = found.recomputed_flops;
    }
  }
  return best;
}

ActivationProfile random_profile(std::mt19937& random) {
  const auto some = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most));
  };
  ActivationProfile profile;
  profile.embeddings = {some(300), some(300), 0, 0};
  profile.head = {some(900), some(900), 0, 0};
  profile.replay_bytes = some(9);
  profile.word_table_bytes = some(200);
  for (int group = 0; group < 2; ++group) {
    const std::int64_t kept = some(50);
    profile.groups.push_back({kept, kept + some(3) * some(200)});
  }
  for (int i = 0; i < 5; ++i) {
    LayerActivations layer;
    layer.group = some(3) - 1;
    layer.input_bytes = 20 + some(80);
    layer.attention = {layer.input_bytes + some(500), some(300), some(60),
                       static_cast<double>(1 + some(20))};
    layer.feed_forward = {layer.input_bytes + some(500), some(300), some(60),
                          static_cast<double>(1 + some(20))};
    profile.layers.push_back(layer);
  }
  profile.layers.back().applications = 1 + some(2);
  return profile;
}

TEST(RecomputeChoice, IsTheLeastWorkOfAllThatFit) {
  std::mt19937 random(7);
  int chosen = 0, refused = 0;
  for (int round = 0; round < 60; ++round) {
    const ActivationProfile profile = random_profile(random);
    const std::vector<Recomputed> none(5, Recomputed::kNothing), full(5, Recomputed::kLayer);
    const std::int64_t most = forecast(profile, none).peak_bytes,
                       least = forecast(profile, full).peak_bytes;
    for (const double share : {-0.1, 0.0, 0.2, 0.5, 0.9, 1.0}) {
      const auto budget =
          least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
      const std::optional<double> expected = least_work(profile, budget);
      if (!expected) {
        EXPECT_THROW(choose_recompute(profile, budget), std::invalid_argument);
        ++refused;
        continue;
      }
      const std::vector<Recomputed> layers = choose_recompute(profile, budget);
      const ActivationForecast found = forecast(profile, layers);
      EXPECT_LE(found.peak_bytes, budget);
      EXPECT_EQ(found.recomputed_flops, *expected) << "round " << round << " share " << share;
      EXPECT_EQ(choose_recompute(profile, budget), layers);
      ++chosen;
    }
  }
  EXPECT_GT(chosen, 200);
  EXPECT_GT(refused, 20);
}

TEST(RecomputeChoice, RecomputesNothingWhereEverythingFits) {
  const ActivationProfile profile = small_profile();
  const std::vector<Recomputed> none(2, Recomputed::kNothing);
  const std::int64_t enough = forecast(profile, none).peak_bytes;
  EXPECT_EQ(choose_recompute(profile, enough), none);
  EXPECT_NE(choose_recompute(profile, enough - 1), none);
}

TEST(RecomputeChoice, RefusalNamesWhatFullNeeds) {
  ActivationProfile profile = small_profile();
  profile.head.working_bytes = 3 << 20;
  try {
    choose_recompute(profile, 1000);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "a step needs 3.00 MiB for activations even when every layer is recomputed "
                 "(full), which is more than the 1000 bytes of auto; allow more, or take a "
                 "smaller micro-batch or shorter sequences");
  }
}

TEST(RecomputeChoice, OfAThousandLayersTakesNoTimeToSpeakOf) {
  ActivationProfile profile = small_profile();
  profile.layers.assign(1000, profile.layers.front());
  const std::vector<Recomputed> none(1000, Recomputed::kNothing);
  const std::int64_t half = forecast(profile, none).peak_bytes / 2;
  EXPECT_LE(forecast(profile, choose_recompute(profile, half)).peak_bytes, half);
}

TEST(BytesText, HasTheUnitThatReadsBest) {
  EXPECT_EQ(bytes_text(812), "812 bytes");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(std::int64_t{6} << 30), "6.00 GiB");
  EXPECT_EQ(bytes_text(std::int64_t{3} << 50), "3072.00 TiB");
}

}  // namespace
}  // namespace tupelo::recompute_choice_test
