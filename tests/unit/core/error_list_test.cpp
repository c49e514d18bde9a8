#include <gtest/gtest.h>

#include <algorithm>

#include "sim/core/error.hpp"

namespace orrery::error_list_test {
namespace {

const Place file{"a.json", ""};

std::string raised(const ErrorList& errors) {
  try {
    errors.raise();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ErrorList, RaisesNothingOneOrAll) {
  ErrorList errors;
  EXPECT_TRUE(errors.attempt([] {}));
  EXPECT_EQ(raised(errors), "nothing");
  EXPECT_FALSE(errors.attempt([] { fail_infeasible(file / "b", "is wrong", "mend it"); }));
  EXPECT_EQ(raised(errors), "a.json: /b: is wrong; mend it");
  errors.attempt([] { fail_input(file / "c", "too", ""); });
  EXPECT_EQ(raised(errors), "a.json: /b: is wrong; mend it\na.json: /c: too");
}

TEST(ErrorList, IsOfTheKindOfTheFirst) {
  ErrorList errors;
  errors.attempt([] { fail_infeasible(file, "a", ""); });
  errors.attempt([] { fail_input(file, "b", ""); });
  try {
    errors.raise();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::infeasible);
  }
}

TEST(ErrorList, TakesApartWhatWasSeveralAlready) {
  ErrorList inner, outer;
  inner.attempt([] { fail_input(file, "a", ""); });
  inner.attempt([] { fail_input(file, "b", ""); });
  outer.attempt([&] { inner.raise(); });
  outer.attempt([] { fail_input(file, "c", ""); });
  EXPECT_EQ(raised(outer), "a.json: a\na.json: b\na.json: c");
}

TEST(ErrorList, CountsTheRestOfVeryMany) {
  ErrorList errors;
  for (int i = 0; i < 25; ++i) errors.attempt([&] { fail_input(file, std::to_string(i), ""); });
  const std::string text = raised(errors);
  EXPECT_TRUE(text.ends_with("a.json: 19\nand 5 more")) << text;
}

// A line break of an input is none of the list.
TEST(ErrorList, KeepsEachErrorOnItsLine) {
  ErrorList errors;
  errors.attempt([] { fail_input(file, "a\nb", ""); });
  errors.attempt([] { fail_input(file, "c", ""); });
  const std::string text = raised(errors);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
}  // namespace orrery::error_list_test
