#include "tests/support/refvec.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace tupelo {
namespace {

TEST(Refvec, ReadsEveryCaseOfTheFolder) {
  ASSERT_FALSE(refvec_names().empty());
  for (const std::string& name : refvec_names()) {
    const Refvec exact = Refvec::load(name, torch::kFloat64);
    const Refvec rough = Refvec::load(name, torch::kFloat32);
    EXPECT_TRUE(exact.config().is_object()) << name;
    EXPECT_EQ(exact.keys(""), rough.keys("")) << name;
  }
}

TEST(Refvec, StoredFloat32ResultsAreWithinToleranceOfFloat64) {
  for (const std::string& name : refvec_names()) {
    const Refvec rough = Refvec::load(name, torch::kFloat32);
    for (const std::string prefix : {"out.", "grad."}) {
      for (const std::string& key : rough.keys(prefix)) {
        EXPECT_TRUE(rough.compare(key, rough.tensor(key)));
      }
    }
  }
}

class RefvecComparison : public testing::Test {
 protected:
  Refvec exact_ = Refvec::load("tupe_r", torch::kFloat64);
  Refvec rough_ = Refvec::load("tupe_r", torch::kFloat32);
  torch::Tensor scores_ = exact_.tensor("out.scores0");
  double largest_ = scores_.abs().max().item<double>();
};

TEST_F(RefvecComparison, ReadsSettingsAndLists) {
  EXPECT_EQ(exact_.integer("rel_bins") + 1,
            exact_.tensor("param.relative_attention_bias.weight").size(0));
  EXPECT_EQ(exact_.number("eps"), 1e-5);
  EXPECT_EQ(exact_.config()["lengths"].size(), exact_.tensor("in.mask").size(0));
  EXPECT_EQ(rough_.tensor("in.q0").scalar_type(), torch::kFloat32);
  EXPECT_EQ(exact_.names_after("in.mas"), std::vector<std::string>{"k"});
  EXPECT_THROW(exact_.tensor("in.nothing"), std::out_of_range);
}

TEST_F(RefvecComparison, DoubleToleranceIsTenDigits) {
  scores_[0][1][2][3] += 0.9e-10 * std::max(1.0, largest_);
  EXPECT_TRUE(exact_.compare("out.scores0", scores_));
  scores_[0][1][2][3] += 0.2e-10 * std::max(1.0, largest_);
  const auto result = exact_.compare("out.scores0", scores_);
  EXPECT_FALSE(result);
  const std::string message = result.message();
  EXPECT_EQ(message.find("tupe_r/out.scores0: gap "), 0u) << message;
  EXPECT_NE(message.find("exceeds tolerance"), std::string::npos) << message;
}

TEST_F(RefvecComparison, FloatToleranceFollowsTheLargestValue) {
  EXPECT_TRUE(rough_.compare("out.scores0", scores_ + 1.9e-5 * largest_));
  EXPECT_FALSE(rough_.compare("out.scores0", scores_ + 2.1e-5 * largest_));
}

TEST_F(RefvecComparison, SmallGradientsMayErrByOnePercentOfTheLargestOfTheFile) {
  double largest_gradient = 0.0;
  std::string smallest_key;
  double smallest = std::numeric_limits<double>::infinity();
  for (const std::string& key : exact_.keys("grad.")) {
    const double size = exact_.tensor(key).abs().max().item<double>();
    largest_gradient = std::max(largest_gradient, size);
    if (size < smallest) {
      smallest = size;
      smallest_key = key;
    }
  }
  const torch::Tensor gradient = exact_.tensor(smallest_key);
  const double scale = std::max(smallest, 1e-2 * largest_gradient);
  EXPECT_TRUE(rough_.compare(smallest_key, gradient + 0.9e-4 * scale));
  EXPECT_FALSE(rough_.compare(smallest_key, gradient + 1.1e-4 * scale));
}

TEST_F(RefvecComparison, NotANumberFails) {
  scores_[1][0][0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(exact_.compare("out.scores0", scores_));
  scores_[1][0][0][0] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(exact_.compare("out.scores0", scores_));
}

TEST_F(RefvecComparison, ShapesMustAgree) {
  EXPECT_FALSE(exact_.compare("out.scores0", scores_[0]));
  EXPECT_FALSE(exact_.compare("out.scores0", torch::Tensor()));
}

TEST_F(RefvecComparison, IntegersAreExact) {
  torch::Tensor bucket = exact_.tensor("out.bucket");
  EXPECT_TRUE(exact_.compare("out.bucket", bucket.to(torch::kInt32)));
  EXPECT_FALSE(exact_.compare("out.bucket", bucket.to(torch::kFloat32)));
  bucket[3][4] += 1;
  EXPECT_FALSE(rough_.compare("out.bucket", bucket));
}

TEST_F(RefvecComparison, RelativeFormsHoldEachElementOrTheScale) {
  const torch::Tensor off = scores_ * (1 + 1e-6);
  EXPECT_TRUE(exact_.compare_each("out.scores0", off, 1.1e-6));
  EXPECT_FALSE(exact_.compare_each("out.scores0", off, 0.9e-6));
  EXPECT_TRUE(exact_.compare_to_scale("out.scores0", scores_ + 0.9e-6 * largest_, 1e-6));
  EXPECT_FALSE(exact_.compare_to_scale("out.scores0", scores_ + 1.1e-6 * largest_, 1e-6));
}

}  // namespace
}  // namespace tupelo
