#include "model/position/tupe_full_flags.h"

#include <stdexcept>

#include "model/position/content_rotation.h"
#include "model/position/t5_buckets.h"

namespace tupelo {
namespace {

void check_options(const OptionReader& reader) {
  const auto reject = [](const std::string& what) {
    throw std::invalid_argument("position encoding tupe-full: " + what);
  };
  if (reader.integer("pos_dim") % 2 != 0 && reader.text("pos_init") == "sinusoidal") {
    reject("pos_dim=" + reader.text("pos_dim") + " must be even with pos_init=sinusoidal");
  }
  if (reader.flag("temperature_cc") && reader.text("temperature") == "none") {
    reject("temperature_cc=true needs temperature=shared or temperature=per-head");
  }
  for (const char* name : {"rel", "rel_bins", "max_distance", "rel_range", "rel_init"}) {
    reader.needs(name, "pp", {"relative", "both"});
  }
  reader.needs("rel_bins", "rel", {"t5"});
  reader.needs("max_distance", "rel", {"t5"});
  reader.needs("rel_range", "rel", {"table"});
}

}  // namespace

std::vector<PositionOptionKind> TupeFullFlags::options() {
  return {
      {"pp",
       "relative",
       {"relative", "dot", "both", "none"},
       "what stands for position-to-position: a bias of the distance, a dot product, both, "
       "nothing"},
      {"scale",
       "joint",
       {"joint", "each"},
       "of the dot products: 1/sqrt(n D) for their number n, or 1/sqrt(D) as in the article's "
       "code"},
      {"temperature",
       "none",
       {"none", "shared", "per-head"},
       "trainable factors, from 1, of content-to-position, position-to-content and "
       "position-to-position"},
      {"temperature_cc",
       "false",
       {"true", "false"},
       "a temperature for content-to-content as well"},
      {"cls_untie",
       "false",
       {"true", "false"},
       "[CLS] has no position: zero position query and key, one trained bias per head towards it"},
      {"pos_dim", "256", {}, "width P of the position table", 2},
      {"pos_init", "sinusoidal", {"sinusoidal", "normal"}, "first values of the position table"},
      {"pos_ln", "false", {"true", "false"}, "a layer norm on the position table"},
      {"rel",
       "table",
       {"table", "t5"},
       "the bias of the distance: a row per distance, or T5's logarithmic buckets"},
      {"rel_init", "normal", {"normal", "zero"}, "first values of that bias"},
      {"rel_range", "longest", {}, "rel=table: distances from here on share the end rows"},
      {"rel_bins", "32", {}, "rel=t5: buckets", 4, false, 1 << 20, kBucketCounts},
      {"max_distance", "128", {}, "rel=t5: distances from here on share a bucket", 2},
      {"fold",
       "auto",
       {"auto", "add", "concat"},
       "how it reaches attention, with equal results: positions added to queries and keys and a "
       "bias that"
       " takes the surplus back, or more features; auto: concat when temperature_cc could reach "
       "0"},
      ContentRotation::option()};
}

TupeFullFlags::TupeFullFlags(const OptionReader& reader)
    : bias(reader.text("pp") == "relative" || reader.text("pp") == "both"),
      dot(reader.text("pp") == "dot" || reader.text("pp") == "both"),
      joint_scale(reader.text("scale") == "joint"),
      temperatures(reader.text("temperature") != "none"),
      shared_temperatures(reader.text("temperature") == "shared"),
      content_temperature(reader.flag("temperature_cc")),
      untie_cls(reader.flag("cls_untie")),
      sinusoidal(reader.text("pos_init") == "sinusoidal"),
      zero_bias(reader.text("rel_init") == "zero"),
      concatenate(reader.text("fold") == "concat" ||
                  (reader.text("fold") == "auto" && content_temperature)) {
  check_options(reader);
}

}  // namespace tupelo
