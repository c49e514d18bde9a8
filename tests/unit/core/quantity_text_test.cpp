#include <gtest/gtest.h>

#include "sim/core/number_text.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::quantity_text_test {
namespace {

const Place at{"dgx.json", "/nic"};

TEST(QuantityText, EveryUnitIsItsSiValue) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("400 GB/s", at).si(), 400e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("400 MB/s", at).si(), 400e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("3.35 TB/s", at).si(), 3.35e12);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1 GiB/s", at).si(), 1073741824.0);
  EXPECT_DOUBLE_EQ(parse_bandwidth("400 Gb/s", at).si(), 50e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("3.2 Tb/s", at).si(), 400e9);
  EXPECT_DOUBLE_EQ(parse_bytes("80 GiB", at).si(), 85899345920.0);
  EXPECT_DOUBLE_EQ(parse_bytes("80 GB", at).si(), 80e9);
  EXPECT_DOUBLE_EQ(parse_bytes("4 kB", at).si(), 4000.0);
  EXPECT_DOUBLE_EQ(parse_bytes("4 KiB", at).si(), 4096.0);
  EXPECT_DOUBLE_EQ(parse_bytes("2 MB", at).si(), 2e6);
  EXPECT_DOUBLE_EQ(parse_bytes("2 MiB", at).si(), 2097152.0);
  EXPECT_DOUBLE_EQ(parse_bytes("1.5 TB", at).si(), 1.5e12);
  EXPECT_DOUBLE_EQ(parse_bytes("1 TiB", at).si(), 1099511627776.0);
  EXPECT_DOUBLE_EQ(parse_bytes("7 B", at).si(), 7.0);
  EXPECT_DOUBLE_EQ(parse_tokens("15T", at), 15e12);
  EXPECT_DOUBLE_EQ(parse_tokens("15t", at), 15e12);
  EXPECT_DOUBLE_EQ(parse_tokens("300 b", at), 300e9);
  EXPECT_DOUBLE_EQ(parse_duration("2 s", at).si(), 2.0);
  EXPECT_DOUBLE_EQ(parse_duration("2 ms", at).si(), 2e-3);
  EXPECT_DOUBLE_EQ(parse_duration("2 us", at).si(), 2e-6);
  EXPECT_DOUBLE_EQ(parse_duration("2 ns", at).si(), 2e-9);
  EXPECT_DOUBLE_EQ(parse_flop_rate("312 TFLOP/s", at).si(), 312e12);
  EXPECT_DOUBLE_EQ(parse_flop_rate("2.5 PFLOP/s", at).si(), 2.5e15);
  EXPECT_DOUBLE_EQ(parse_flop_rate("500 GFLOP/s", at).si(), 5e11);
}

TEST(QuantityText, TheSpaceIsFreeAndExponentsCount) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("400GB/s", at).si(), 400e9);
  EXPECT_DOUBLE_EQ(parse_duration("1e-3 ms", at).si(), 1e-6);
}

TEST(QuantityText, ZeroIsADurationAndAnAmountButNoSpeed) {
  EXPECT_EQ(parse_duration("0 us", at).si(), 0.0);
  EXPECT_EQ(parse_bytes("0 B", at).si(), 0.0);
  EXPECT_EQ(error_text([] { parse_bandwidth("0 GB/s", at); }),
            "dgx.json: /nic: '0 GB/s' is not a positive bandwidth; write it like \"400 GB/s\"");
  EXPECT_EQ(error_text([] { parse_flop_rate("0 TFLOP/s", at); }),
            "dgx.json: /nic: '0 TFLOP/s' is not a positive speed; write it like \"312 TFLOP/s\"");
}

TEST(QuantityText, WhatIsNoNumberIsRefused) {
  for (const char* text : {"", "fast", "inf us", "nan us", "-5 us", "1e999 us", "+5 us", " 5 us"})
    EXPECT_EQ(
        error_text([&] { parse_duration(text, at); }),
        "dgx.json: /nic: '" + std::string{text} + "' is not a duration; write it like \"5 us\"");
}

TEST(QuantityText, WhatHasNoUnitIsRefused) {
  for (const char* text : {"400", "400 GBps", "400  GB/s", "400 GB/s ", "400 gb/s"})
    EXPECT_EQ(error_text([&] { parse_bandwidth(text, at); }),
              "dgx.json: /nic: '" + std::string{text} +
                  "' has no known unit; use GB/s, MB/s, TB/s or GiB/s (bytes), or Gb/s or Tb/s "
                  "(bits)");
}

TEST(QuantityText, AbsurdAmountsAreRefused) {
  EXPECT_EQ(error_text([] { parse_bytes("1e30 GB", at); }),
            "dgx.json: /nic: '1e30 GB' is absurdly large; check the number and its unit");
}

TEST(QuantityText, HostileTextIsShownShortAndHarmless) {
  // 60 characters of it at most, and no control character that a terminal would obey.
  EXPECT_EQ(error_text([] { parse_bytes("\x1b[2J", at); }),
            "dgx.json: /nic: '\\u001b[2J' is not an amount of memory; write it like \"80 GiB\"");
  const std::string message = error_text([] { parse_bytes(std::string(1'000'000, 'x'), at); });
  EXPECT_LT(message.size(), 200u);
}

}  // namespace
}  // namespace orrery::quantity_text_test
