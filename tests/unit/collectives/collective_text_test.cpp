#include "sim/collectives/collective_text.hpp"

#include <gtest/gtest.h>

namespace orrery::collective_text_test {
namespace {

CollectiveLine line(CollectiveKind kind) {
  CollectiveLine line{{kind, 4, 1, Bytes{4000}}, {}};
  line.result.time = microseconds(2.0);
  line.result.cost.algorithm = "ring";
  line.result.cost.protocol = "LL";
  line.result.cost.channels = 2;
  line.result.cost.tag = Tag::measured;
  line.deviation = std::log(2.0) / range_deviations;  // Nine in ten within a factor of two.
  return line;
}

// 4000 B in 2 us are 2 GB/s, of which the bus sees 1.5 (all-reduce) or 0.75.
TEST(CollectiveText, HasTheColumnsOfNcclTests) {
  EXPECT_EQ(collective_text({line(CollectiveKind::all_reduce), line(CollectiveKind::all_to_all)},
                            TextWidth::unlimited),
            "  size (B)  count   type  redop  root  time (us)  algbw (GB/s)  busbw (GB/s)  #wrong  "
            "algorithm  protocol  channels  tag       90 % range (us)\n"
            "      4000   1000  float    sum    -1       2.00          2.00          3.00     N/A  "
            "ring       LL               2  measured  1.00 .. 4.00\n"
            "      4000    250  float   none    -1       2.00          2.00          1.50     N/A  "
            "ring       LL               2  measured  1.00 .. 4.00\n");
}

TEST(CollectiveText, FitsATerminal) {
  EXPECT_EQ(collective_text({line(CollectiveKind::all_reduce)}),
            "  size (B)  time (us)  busbw (GB/s)  algorithm  tag       90 % range (us)\n"
            "      4000       2.00          3.00  ring       measured  1.00 .. 4.00\n");
}

TEST(CollectiveText, JsonIsAnObjectOrAList) {
  const CollectiveLine one = line(CollectiveKind::all_reduce);
  const std::string object = R"({
  "schema": "orrery.collective/1",
  "collective": "all_reduce",
  "system": "x",
  "ranks": 4,
  "nodes": 1,
  "bytes": 4000,
)";
  EXPECT_EQ(collective_json("x", {one}).substr(0, object.size()), object);
  EXPECT_EQ(collective_json("x", {one, one}).substr(0, 5), "[\n  {");
}

}  // namespace
}  // namespace orrery::collective_text_test
