#include "sim/formats/settings/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/formats/settings/settings_files.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::settings_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Settings read(const std::string& text) { return {read_yaml(text, "run.yaml"), "run.yaml"}; }

TEST(Settings, FirstOfSeveralPaths) {
  const Settings settings = read("new: {a: null, b: 2}\nold: {a: 3, b: 4}\n");
  EXPECT_EQ(settings.number("new.a|old.a", 0), 3);
  EXPECT_EQ(settings.number("new.b|old.b", 0), 2);
  EXPECT_EQ(settings.number("new.c|old.c", 7), 7);
  EXPECT_EQ(settings.name("new.a|old.a"), "old.a");
  EXPECT_EQ(settings.name("new.c|old.c"), "new.c");
  EXPECT_THAT(settings.unread(), ElementsAre("old.b"));
}

TEST(Settings, ValuesOfEachKind) {
  const Settings settings =
      read("n: -1\nbig: 4_096\non: True\noff: 'false'\nlist: [a, b]\nline: 'a, b'\nword: None\n");
  EXPECT_EQ(settings.number("n", 0), -1);
  EXPECT_EQ(settings.number("big", 0), 4096);
  EXPECT_TRUE(settings.flag("on", false));
  EXPECT_FALSE(settings.flag("off", true));
  EXPECT_THAT(settings.words("list"), ElementsAre("a", "b"));
  EXPECT_THAT(settings.words("line"), ElementsAre("a", "b"));
  EXPECT_EQ(settings.choice("word", {{"", "absent"}, {"none", "nothing"}}), "nothing");
  EXPECT_EQ(settings.choice("gone", {{"", "absent"}, {"none", "nothing"}}), "absent");
}

TEST(Settings, WhatIsGivenWins) {
  Settings settings = read("a: {b: 1}\nc: 5\n");
  settings.set("a.b", "2");
  settings.set("c.d.e", "x");
  EXPECT_EQ(settings.number("a.b", 0), 2);
  EXPECT_EQ(refusal_of([&] { settings.number("c.d.e", 0); }),
            "--set: c.d.e is 'x'; write a whole number");
}

TEST(Settings, Refusals) {
  const Settings settings = read("a:\n  n: 1.5\n  t: maybe\n  l: [1]\n  v: ${x:1}\n");
  const auto refusal = [](auto&& ask) { return refusal_of(ask); };
  EXPECT_EQ(refusal([&] { settings.number("a.n", 0); }),
            "run.yaml: line 2: a.n is '1.5'; write a whole number");
  EXPECT_EQ(refusal([&] { settings.flag("a.t", false); }),
            "run.yaml: line 3: a.t is 'maybe'; write true or false");
  EXPECT_EQ(refusal([&] { settings.number("a.l", 0); }),
            "run.yaml: line 4: a.l is a list; write one value");
  EXPECT_EQ(refusal([&] { settings.word("a", ""); }),
            "run.yaml: line 2: a has settings below it; write one value");
  EXPECT_EQ(refusal([&] { settings.number("a.v", 0); }),
            "run.yaml: line 5: a.v is ${x:1}, which the file does not say; give it: --set a.v=N");
  EXPECT_EQ(refusal([&] { settings.required("a.m"); }),
            "run.yaml: has no a.m; add it, or give --set a.m=N");
  EXPECT_EQ(refusal([&] {
              settings.choice("a.t", {{"may", ""}, {"must", ""}});
            }),
            "run.yaml: line 3: a.t is 'maybe'; write one of: may, must");
}

}  // namespace
}  // namespace orrery::settings_test
