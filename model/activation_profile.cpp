#include "model/activation_profile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tupelo {
namespace {

// What the halves of a layer keep under a policy, per application.
struct Halves {
  std::int64_t attention, feed_forward;
};

Halves kept_by(const LayerActivations& layer, Recomputed part, std::int64_t replay_bytes) {
  const std::int64_t input_alone = layer.input_bytes + replay_bytes;
  switch (part) {
    case Recomputed::kAttention:
      return {input_alone, layer.feed_forward.kept_bytes};
    case Recomputed::kFeedForward:
      return {layer.attention.kept_bytes, input_alone};
    case Recomputed::kLayer:
      return {input_alone, 0};
    case Recomputed::kNothing:
      break;
  }
  return {layer.attention.kept_bytes, layer.feed_forward.kept_bytes};
}

// The most that one application of the layer holds during its own backward pass.
std::int64_t backward_peak(const LayerActivations& layer, Recomputed part,
                           std::int64_t replay_bytes) {
  const PartActivations &attention = layer.attention, &feed_forward = layer.feed_forward;
  const bool again = recomputes_attention(part), again_behind = recomputes_feed_forward(part);
  const bool whole = again && again_behind;
  const std::int64_t in_front = again && !whole ? layer.input_bytes : attention.kept_bytes;
  const std::int64_t behind_peak = in_front + feed_forward.kept_bytes + feed_forward.working_bytes +
                                   (again_behind ? feed_forward.parameter_bytes : 0) +
                                   (whole ? attention.parameter_bytes : 0);
  // When a whole layer is recomputed, the gradients of its second half wait for the first's.
  const std::int64_t attention_peak = attention.kept_bytes + attention.working_bytes +
                                      (again ? attention.parameter_bytes : 0) +
                                      (whole ? feed_forward.parameter_bytes : 0);
  return std::max(behind_peak, attention_peak) + (again || again_behind ? replay_bytes : 0);
}

double recomputed_work(const LayerActivations& layer, Recomputed part) {
  return static_cast<double>(layer.applications) *
         ((recomputes_attention(part) ? layer.attention.flops : 0.0) +
          (recomputes_feed_forward(part) ? layer.feed_forward.flops : 0.0));
}

const SharedTerms& terms_of(const ActivationProfile& profile, std::int64_t group) {
  return group < 0 ? profile.plain : profile.groups.at(static_cast<std::size_t>(group));
}

// What is there before the first layer, whatever the policy.
std::int64_t base_bytes(const ActivationProfile& profile) {
  return profile.embeddings.kept_bytes + profile.mask_decoder_bytes;
}

// A choice for the first layers on the way to one for all.
struct Partial {
  double flops = 0;
  std::int64_t bytes = 0;      // kept by those layers
  std::int64_t previous = -1;  // index among the partial choices of one layer fewer
  Recomputed part = Recomputed::kNothing;
};

// Models of many layers with many kinds of them have more partial choices than are worth telling
// apart; of those every few are left, the cheapest and the smallest among them.
std::vector<Partial> thinned(std::vector<Partial> partials) {
  constexpr std::size_t kMost = 4096;
  if (partials.size() <= kMost) return partials;
  std::vector<Partial> some;
  for (std::size_t i = 0; i < kMost; ++i) {
    some.push_back(partials[i * (partials.size() - 1) / (kMost - 1)]);
  }
  return some;
}

// Leaves those that no other beats in both work and memory, by rising work.
std::vector<Partial> undominated(std::vector<Partial> partials) {
  std::stable_sort(partials.begin(), partials.end(), [](const Partial& a, const Partial& b) {
    return std::pair(a.flops, a.bytes) < std::pair(b.flops, b.bytes);
  });
  std::vector<Partial> best;
  for (const Partial& partial : partials) {
    if (best.empty() || partial.bytes < best.back().bytes) best.push_back(partial);
  }
  return thinned(std::move(best));
}

// The cheapest choice when shared terms take `shared_bytes`; `may_capture` says of each group
// whether its attention may be recomputed. Empty when nothing fits.
std::vector<Recomputed> cheapest(const ActivationProfile& profile, std::int64_t budget_bytes,
                                 std::int64_t shared_bytes, const std::vector<bool>& may_capture) {
  constexpr std::array kParts = {Recomputed::kNothing, Recomputed::kFeedForward,
                                 Recomputed::kAttention, Recomputed::kLayer};
  const std::int64_t base = base_bytes(profile) + shared_bytes;
  std::vector<std::vector<Partial>> stages = {{Partial{}}};
  for (const LayerActivations& layer : profile.layers) {
    std::vector<Partial> next;
    for (std::size_t i = 0; i < stages.back().size(); ++i) {
      for (const Recomputed part : kParts) {
        if (recomputes_attention(part) && !may_capture[static_cast<std::size_t>(layer.group + 1)]) {
          continue;
        }
        const Partial& before = stages.back()[i];
        const Halves kept = kept_by(layer, part, profile.replay_bytes);
        const std::int64_t once = kept.attention + kept.feed_forward;
        const std::int64_t earlier = before.bytes + (layer.applications - 1) * once;
        const std::int64_t peak = base + earlier + profile.word_table_bytes +
                                  backward_peak(layer, part, profile.replay_bytes);
        if (peak > budget_bytes) continue;
        next.push_back({before.flops + recomputed_work(layer, part), earlier + once,
                        static_cast<std::int64_t>(i), part});
      }
    }
    stages.push_back(undominated(std::move(next)));
  }
  const std::int64_t at_the_end =
      base + profile.head.kept_bytes + profile.head.working_bytes + profile.word_table_bytes;
  std::int64_t index = -1;
  for (std::size_t i = 0; i < stages.back().size() && index < 0; ++i) {
    if (at_the_end + stages.back()[i].bytes <= budget_bytes) index = static_cast<std::int64_t>(i);
  }
  std::vector<Recomputed> parts;
  for (std::size_t stage = stages.size() - 1; index >= 0 && stage > 0; --stage) {
    const Partial& partial = stages[stage][static_cast<std::size_t>(index)];
    parts.push_back(partial.part);
    index = partial.previous;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

ActivationForecast forecast(const ActivationProfile& profile,
                            const std::vector<Recomputed>& layers) {
  ActivationForecast result;
  std::vector<bool> captured(profile.groups.size() + 1, false), used(captured);
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    const auto group = static_cast<std::size_t>(profile.layers[i].group + 1);
    used[group] = true;
    captured[group] = captured[group] || recomputes_attention(layers.at(i));
  }
  for (std::size_t group = 0; group < used.size(); ++group) {
    const SharedTerms& terms = terms_of(profile, static_cast<std::int64_t>(group) - 1);
    result.shared_bytes +=
        used[group] ? (captured[group] ? terms.captured_bytes : terms.kept_bytes) : 0;
  }
  std::int64_t kept = base_bytes(profile) + result.shared_bytes;
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    const LayerActivations& layer = profile.layers[i];
    const Halves halves = kept_by(layer, layers[i], profile.replay_bytes);
    result.attention_bytes.push_back(layer.applications * halves.attention);
    result.feed_forward_bytes.push_back(layer.applications * halves.feed_forward);
    kept += (layer.applications - 1) * (halves.attention + halves.feed_forward);
    result.peak_bytes =
        std::max(result.peak_bytes, kept + backward_peak(layer, layers[i], profile.replay_bytes));
    kept += halves.attention + halves.feed_forward;
    result.recomputed_flops += recomputed_work(layer, layers[i]);
  }
  result.kept_bytes = kept + profile.head.kept_bytes;
  result.peak_bytes = profile.word_table_bytes +
                      std::max(result.peak_bytes, result.kept_bytes + profile.head.working_bytes);
  result.peak_bytes = std::max(result.peak_bytes, base_bytes(profile) + result.shared_bytes +
                                                      profile.embeddings.working_bytes +
                                                      2 * profile.word_table_bytes);
  return result;
}

std::vector<Recomputed> choose_recompute(const ActivationProfile& profile,
                                         std::int64_t budget_bytes) {
  const std::vector<Recomputed> full(profile.layers.size(), Recomputed::kLayer);
  std::vector<bool> used(profile.groups.size() + 1, false);
  for (const LayerActivations& layer : profile.layers) {
    used[static_cast<std::size_t>(layer.group + 1)] = true;
  }
  // Groups whose terms become larger once any of their attention is recomputed are a choice of
  // their own; there are few, and mostly none.
  std::vector<std::size_t> choices;
  for (std::size_t group = 0; group <= profile.groups.size(); ++group) {
    const SharedTerms& terms = terms_of(profile, static_cast<std::int64_t>(group) - 1);
    if (used[group] && terms.captured_bytes != terms.kept_bytes) choices.push_back(group);
  }
  constexpr std::size_t kMostChoices = 6;
  choices.resize(std::min(choices.size(), kMostChoices));
  std::vector<Recomputed> best;
  ActivationForecast best_forecast;
  for (std::size_t mask = 0; mask < std::size_t{1} << choices.size(); ++mask) {
    std::vector<bool> may_capture(profile.groups.size() + 1, true);
    for (std::size_t i = 0; i < choices.size(); ++i) may_capture[choices[i]] = (mask >> i & 1) != 0;
    std::int64_t shared = 0;
    for (std::size_t group = 0; group < may_capture.size(); ++group) {
      const SharedTerms& terms = terms_of(profile, static_cast<std::int64_t>(group) - 1);
      if (used[group]) shared += may_capture[group] ? terms.captured_bytes : terms.kept_bytes;
    }
    const std::vector<Recomputed> parts = cheapest(profile, budget_bytes, shared, may_capture);
    if (parts.empty()) continue;
    const ActivationForecast found = forecast(profile, parts);
    if (found.peak_bytes > budget_bytes) continue;
    if (best.empty() || found.recomputed_flops < best_forecast.recomputed_flops) {
      best = parts;
      best_forecast = found;
    }
  }
  if (!best.empty()) return best;
  std::string what = "a step needs " + bytes_text(forecast(profile, full).peak_bytes);
  what += " for activations even when every layer is recomputed (full), which is more than the ";
  what += bytes_text(budget_bytes);
  what += " of auto; allow more, or take a smaller micro-batch or shorter sequences";
  throw std::invalid_argument(what);
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  if (amount < 1024.0) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  for (amount /= 1024.0; amount >= 1024.0 && unit + 1 < kUnits.size(); ++unit) amount /= 1024.0;
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << amount << ' ' << kUnits[unit];
  return text.str();
}

}  // namespace tupelo
