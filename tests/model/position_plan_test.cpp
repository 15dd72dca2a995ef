#include "model/position/position_plan.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "model/layer_set.h"

namespace tupelo::position_plan_test {
namespace {

std::string canonical(const std::string& text, std::int64_t layers = 12) {
  return PositionPlan::parse(text, layers).to_string();
}

std::string refusal(const std::string& text, std::int64_t layers = 12) {
  try {
    PositionPlan::parse(text, layers);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const std::string& text, const std::string& part) {
  EXPECT_NE(refusal(text).find(part), std::string::npos) << text << " -> " << refusal(text);
}

TEST(PositionPlan, OneEntryIsOneGroup) {
  const PositionPlan plan = PositionPlan::parse("0-5:none,6-11:tupe-r(rel_bins=16)", 12);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].encoding, "tupe-r");
  EXPECT_EQ(plan.groups[0].options, (PositionOptions{{"rel_bins", "16"}}));
  EXPECT_EQ(plan.groups[0].layers, (std::vector<std::int64_t>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(plan.group_of_layer,
            (std::vector<std::int64_t>{-1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0}));
}

TEST(PositionPlan, CanonicalText) {
  EXPECT_EQ(canonical("all:none"), "all:none");
  EXPECT_EQ(canonical(" 6-11 : tupe-r , 0-5 : none "), "0-5:none,6-11:tupe-r");
  EXPECT_EQ(canonical("0-11:tupe-a"), "all:tupe-a");
  EXPECT_EQ(canonical("0+1+2+5:tupe-a,3-4+6-11:none"), "0-2+5:tupe-a,3-4+6-11:none");
  EXPECT_EQ(canonical("0-2:none,3-11:none"), "all:none");
  EXPECT_EQ(canonical("all:article(scale=each)"), "all:tupe-full(scale=each)");
  // Declared order, no defaults, no leading zeros.
  EXPECT_EQ(canonical("all:tupe-full(pos_dim=0064, scale = each,pp=both,rel=table)"),
            "all:tupe-full(pp=both,scale=each,pos_dim=64)");
  EXPECT_EQ(canonical("all:tupe-r(rel_bins=32)"), "all:tupe-r");
}

TEST(PositionPlan, SharingDecidesGroups) {
  EXPECT_EQ(canonical("all:tupe-r(share=layer)", 3), "0:tupe-r,1:tupe-r,2:tupe-r");
  EXPECT_EQ(canonical("0-1:tupe-r,2:tupe-r", 3), "0-1:tupe-r,2:tupe-r");
  EXPECT_EQ(canonical("0:tupe-r(share=model),1:none,2:tupe-r(share=model)", 3),
            "0+2:tupe-r,1:none");
  EXPECT_EQ(canonical("0:tupe-r(share=model),1:tupe-r(share=model,rel_bins=16),2:tupe-r", 3),
            "0:tupe-r,1:tupe-r(rel_bins=16),2:tupe-r");
  EXPECT_EQ(PositionPlan::parse("all:tupe-full(share=layer,pp=dot)", 4).groups.size(), 4u);
}

TEST(PositionPlan, CanonicalTextIsAFixedPoint) {
  for (const std::string text :
       {"all:none", "0-5:none,6-11:tupe-r", "all:tupe-full(share=layer,pp=both)",
        "0+3+6:tupe-a(fold=concat,share=model),1-2:none,4-5+7-11:tupe-a(share=model)"}) {
    const std::string once = canonical(text);
    EXPECT_EQ(canonical(once), once);
    EXPECT_EQ(PositionPlan::parse(once, 12).group_of_layer,
              PositionPlan::parse(text, 12).group_of_layer);
  }
}

TEST(PositionPlan, UnknownEncodingNamesTheNearest) {
  expect_refusal("all:tupe_r", "did you mean 'tupe-r'");
  expect_refusal("all:tuperr", "did you mean 'tupe-r'");
  expect_refusal("all:articel", "did you mean 'article'");
  expect_refusal("all:zzzzzzzz", "valid: none, alibi, ");
  for (const PositionEncodingKind& kind : position_encoding_kinds()) {
    expect_refusal("all:zzzzzzzz", ", " + kind.name);
  }
  expect_refusal("all:", "unknown position encoding ''");
}

TEST(PositionPlan, LayersMustBeNamedExactlyOnce) {
  expect_refusal("0-10:none", "layer 11 is missing");
  expect_refusal("all:none,3:tupe-r", "layer 3 is named by more than one entry");
  expect_refusal("0-12:none", "layer 12 does not exist; layers are 0 to 11");
  expect_refusal("3+3:none,0-2+4-11:none", "layer 3 is named twice");
  expect_refusal("5-2:none", "ends before it starts");
}

TEST(PositionPlan, MalformedEntriesShowTheText) {
  expect_refusal("", "has no ':'");
  expect_refusal("all:none,", "has no ':'");
  expect_refusal("tupe-r", "entry 'tupe-r' has no ':'");
  expect_refusal("x-3:none", "'x-3' is no layer");
  expect_refusal("-3:none", "'-3' is no layer");
  expect_refusal("1.5:none", "'1.5' is no layer");
  expect_refusal("all:tupe-r(", "unbalanced parentheses");
  expect_refusal("all:tupe-r(rel_bins=4))", "unbalanced parentheses");
  expect_refusal("all:tupe-r(rel_bins=4)x", "unbalanced parentheses");
  expect_refusal("all:tupe-r()", "has '' where option=value belongs");
  expect_refusal("all:tupe-r(rel_bins)", "has 'rel_bins' where option=value belongs");
  expect_refusal("all:none(x=1)", "none, which has no options");
}

TEST(PositionPlan, OptionsAreCheckedPerEncoding) {
  expect_refusal("all:tupe-r(rel_bin=16)", "no option 'rel_bin' (did you mean 'rel_bins'?)");
  expect_refusal("all:tupe-a(rel_bins=16)", "it has: theta, fold");
  expect_refusal("all:tupe-full(pp=dott)",
                 "pp=dott is not valid (did you mean 'dot'?); valid: "
                 "relative|dot|both|none");
  expect_refusal("all:tupe-r(rel_bins=x)", "an even integer from 4");
  expect_refusal("all:tupe-r(rel_bins=2)", "an even integer from 4");
  expect_refusal("all:shaw(clip=100000000000)", "an integer >= 1 and <= 1048576");
  expect_refusal("all:conv(kernel=99999999999)", "an odd integer from 3 to 1023");
  expect_refusal("all:tupe-r(rel_bins=16,rel_bins=16)", "given twice");
  expect_refusal("all:tupe-r(share=layers)",
                 "share=layers is not valid (did you mean 'layer'?); valid: group|layer|model");
  expect_refusal("all:tupe-r(share=layer,share=layer)", "share is given twice");
  expect_refusal("all:alibi(shre=layer)", "no option 'shre' (did you mean 'share'?); it has: form");
}

TEST(LayerSet, ReadsAndWrites) {
  EXPECT_EQ(parse_layer_set("0-3+6", 8, "recompute"), (std::vector<std::int64_t>{0, 1, 2, 3, 6}));
  EXPECT_EQ(parse_layer_set("all", 2, "recompute"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(layer_set_text({0, 1, 2, 3, 6}, 8), "0-3+6");
  EXPECT_EQ(layer_set_text({0, 1}, 2), "all");
  EXPECT_EQ(layer_set_text({1}, 2), "1");
  try {
    parse_layer_set("some", 8, "recompute");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).rfind("recompute: 'some' is no layer", 0), 0u);
  }
}

}  // namespace
}  // namespace tupelo::position_plan_test
