#include "bench/arguments.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tupelo::bench {
namespace {

Arguments arguments_of(const std::string& value) {
  const char* words[] = {"bench", "--option", value.c_str()};
  return Arguments(3, const_cast<char**>(words), {{"--option", "1"}});
}

TEST(Arguments, ReadsDecimals) {
  EXPECT_EQ(arguments_of("0.25").decimal("--option", 0), 0.25);
  EXPECT_EQ(arguments_of("3e2").decimal("--option", 300), 300);
}

TEST(Arguments, RefusesWhatIsNoDecimalOfItsRange) {
  for (const std::string value : {"", "x", "1x", "1,5", "-1", "inf", "nan", "1e999"}) {
    SCOPED_TRACE(value);
    try {
      arguments_of(value).decimal("--option", 0);
      ADD_FAILURE() << "was taken";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "--option is '" + value + "'; valid is a number of 0 or more");
    }
  }
}

TEST(Arguments, TakesListsApart) {
  EXPECT_EQ(arguments_of("a,b,c").words("--option"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(arguments_of("").words("--option"), std::vector<std::string>{});
}

}  // namespace
}  // namespace tupelo::bench
