#include "calibration/host/options.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::calibration::options_test {
namespace {

TEST(Options, AreRead) {
  const Options options =
      parse_options({"measure", "-o", "r.json", "--resume", "--time-limit", "5m", "--kinds",
                     "gemm,attention", "--noise", "0.01", "--device", "3"});
  EXPECT_EQ(options.command, "measure");
  EXPECT_EQ(options.output, "r.json");
  EXPECT_TRUE(options.resume);
  EXPECT_DOUBLE_EQ(options.budget_s, 300.0);
  EXPECT_EQ(options.kinds, (std::vector<std::string>{"gemm", "attention"}));
  EXPECT_DOUBLE_EQ(options.noise, 0.01);
  EXPECT_EQ(options.device, 3);
  EXPECT_EQ(parse_options({"step", "--layers", "4", "--mbs", "2"}).step.layers, 4);
  EXPECT_EQ(parse_options({}).command, "help");
  EXPECT_EQ(parse_options({"measure", "--help"}).command, "help");
}

TEST(Options, DurationsCarryAUnit) {
  EXPECT_DOUBLE_EQ(parse_duration("30s", "--time-limit"), 30.0);
  EXPECT_DOUBLE_EQ(parse_duration("1.5h", "--time-limit"), 5400.0);
  for (const char* text : {"", "5", "m", "5x", "-5m", "0s", "nan s", "1e9h", "5 m"})
    EXPECT_THROW(parse_duration(text, "--time-limit"), Error) << text;
}

std::string refusal(const std::vector<std::string>& arguments) {
  return error_text([&] { parse_options(arguments); });
}

TEST(Options, RefusalsSayWhatToWrite) {
  EXPECT_EQ(refusal({"mesure"}), "'mesure' is not a command; did you mean 'measure'?");
  EXPECT_EQ(refusal({"measure", "--time-limt", "5m"}),
            "unknown option '--time-limt'; did you mean '--time-limit'?");
  EXPECT_EQ(refusal({"measure", "--time-limit"}), "--time-limit: needs a value; write it behind");
  EXPECT_EQ(refusal({"measure", "--time-limit", "5"}),
            "--time-limit: '5' is not a duration; write it like 30s, 5m or 1.5h");
  EXPECT_EQ(refusal({"measure", "--kinds", "gemm,atention"}),
            "--kinds: 'atention' is not a kind of measurement; did you mean 'attention'?");
  EXPECT_EQ(refusal({"measure", "--device", "-1"}),
            "--device: '-1' is out of range; write a whole number from 0 to 1023");
  EXPECT_EQ(refusal({"measure", "--ranks", "2"}),
            "--bootstrap: several processes need both --ranks and --bootstrap; give each process "
            "--rank R --ranks N --bootstrap FILE");
  EXPECT_EQ(refusal({"step", "--resume"}), "unknown option '--resume'; see orrery-gpu --help");
  EXPECT_EQ(refusal({"info", "-o", "x"}), "unknown option '-o'; see orrery-gpu --help");
}

}  // namespace
}  // namespace orrery::calibration::options_test
