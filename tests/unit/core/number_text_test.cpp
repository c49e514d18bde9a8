#include "sim/core/number_text.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "sim/core/value_list.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::number_text_test {
namespace {

TEST(NumberText, SetsThousandsApart) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(131072), "131,072");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
}

// A comma sets thousands apart or values of a list: never one silently for the other.
TEST(ValueList, IsNoNumberWithCommas) {
  using Values = std::vector<std::string>;
  const auto values = [](const std::string& text) { return parse_value_list(text, {}); };
  EXPECT_EQ(values("1,024"), Values{"1024"});
  EXPECT_EQ(values("16,000"), Values{"16000"});
  EXPECT_EQ(values("1,2,4"), (Values{"1", "2", "4"}));
  EXPECT_EQ(values("64,128,256"), (Values{"64", "128", "256"}));
  EXPECT_EQ(values("128,1"), (Values{"128", "1"}));
  EXPECT_EQ(error_text([&] { values("1,152"); }),
            "'1,152' may be the number 1152 or a list; write 1152, or the list with its largest "
            "value first");
}

TEST(NumberText, RoundsToTheRequestedDecimals) {
  EXPECT_EQ(fixed(80412.26, 1), "80,412.3");
  EXPECT_EQ(fixed(999.96, 1), "1,000.0");
  EXPECT_EQ(fixed(0.4, 0), "0");
  EXPECT_EQ(fixed(-1e-18, 3), "0.000");
  EXPECT_EQ(fixed(-1234.5, 1), "-1,234.5");
  EXPECT_EQ(fixed(1e9, 0), "1,000,000,000");
  EXPECT_EQ(fixed(std::numeric_limits<double>::quiet_NaN(), 1), "-");
}

TEST(NumberText, ChoosesTheLargestUnitThatLeavesAtLeastOne) {
  EXPECT_EQ(duration_text(Seconds{1.0}), "1.000 s");
  EXPECT_EQ(duration_text(Seconds{0.9999}), "999.900 ms");
  EXPECT_EQ(duration_text(Seconds{1e-3}), "1.000 ms");
  EXPECT_EQ(duration_text(Seconds{2.5e-7}), "0.250 us");
  EXPECT_EQ(duration_text(Seconds{0.0}), "0.000 us");
  EXPECT_EQ(bytes_text(Bytes{999.0}), "999 B");
  EXPECT_EQ(bytes_text(Bytes{1e3}), "1.00 kB");
  EXPECT_EQ(bytes_text(Bytes{3.221e9}), "3.22 GB");
  EXPECT_EQ(bytes_text(Bytes{1.5e12}), "1.50 TB");
  EXPECT_EQ(bytes_text(Bytes{2e15}), "2,000.00 TB");
}

TEST(NumberText, ReadsWholeNumbersAsPeopleWriteThem) {
  for (const auto& [text, value] :
       std::initializer_list<std::pair<const char*, std::int64_t>>{{"0", 0},
                                                                   {"1024", 1024},
                                                                   {"1,024", 1024},
                                                                   {"12,345,678", 12'345'678},
                                                                   {"8k", 8000},
                                                                   {"1.5k", 1500},
                                                                   {"4M", 4'000'000},
                                                                   {"1,000k", 1'000'000},
                                                                   {"-3", -3}})
    EXPECT_EQ(whole_number(text), value) << text;
  EXPECT_EQ(whole_number("8k", 1024), 8192);
  EXPECT_EQ(whole_number("1M", 1024), 1 << 20);
  for (const char* text : {"", "k", "1,02", "1,0244", "1024,1", ",024", "1,,024", "1234,567", "1.5",
                           "8 k", "8kk", "1e300", "nan", "1,024.5"})
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  const Place at{"", "--x"};
  for (const char* text : {"1600 Gb/s", "1,600 Gb/s", "1600Gbps", "1.6 Tbps", "1600 Gbit/s"})
    EXPECT_EQ(parse_bandwidth(text, at).si(), 200e9) << text;
  for (const char* text : {"14d", "14 days", "2 weeks", "336 h", "1,209,600 s"})
    EXPECT_EQ(parse_span(text, at).si(), 14 * 86400.0) << text;
  EXPECT_EQ(parse_span("12 months", at).si(), 365.25 * 86400.0);
}

TEST(NumberText, PercentHasOneDecimal) {
  EXPECT_EQ(percent(0.44321), "44.3 %");
  EXPECT_EQ(percent(1.0), "100.0 %");
  EXPECT_EQ(percent(0.0), "0.0 %");
}

TEST(NumberText, SignedPercentHasASignThatItsDigitsBear) {
  EXPECT_EQ(signed_percent(0.44321), "+44.3 %");
  EXPECT_EQ(signed_percent(-0.0123), "-1.2 %");
  EXPECT_EQ(signed_percent(0.0), "+0.0 %");
  EXPECT_EQ(signed_percent(-0.0004), "+0.0 %");
}

TEST(NumberText, SpansAreInTheUnitThatAPersonWouldChoose) {
  EXPECT_EQ(span_text(Seconds{42.04}), "42.0 seconds");
  EXPECT_EQ(span_text(Seconds{864.0}), "14.4 minutes");  // A hundredth of a day.
  EXPECT_EQ(span_text(Seconds{5400.0}), "1.50 hours");
  EXPECT_EQ(span_text(Seconds{47.0 * 3600}), "47.0 hours");
  EXPECT_EQ(span_text(Seconds{48.0 * 3600}), "2.00 days");
  EXPECT_EQ(span_text(Seconds{365.0 * 86400}), "365 days");
  EXPECT_EQ(span_text(Seconds{3652.5 * 86400}), "10.0 years");
}

// All shares of a bar of ten: as many marks as tenths, rounded, and never more than ten.
TEST(NumberText, BarHasItsShareOfMarks) {
  for (int tenth = 0; tenth <= 10; ++tenth)
    EXPECT_EQ(bar(tenth / 10.0, 10), std::string(static_cast<std::size_t>(tenth), '#'));
  EXPECT_EQ(bar(0.04, 10), "");
  EXPECT_EQ(bar(0.06, 10), "#");
  EXPECT_EQ(bar(1.7, 10, '='), "==========");
  EXPECT_EQ(bar(-1.0, 10), "");
}

}  // namespace
}  // namespace orrery::number_text_test
