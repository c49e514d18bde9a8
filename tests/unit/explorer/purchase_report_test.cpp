#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/explorer/reports.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::purchase_report_test {
namespace {

using testing::HasSubstr;

std::string result_of(const std::string& page) {
  const std::size_t begin = page.find('\n', page.find("id=\"result\"")) + 1;
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(PurchaseReport, HoldsTheTablesAndThePurchase) {
  PurchaseRequest request;
  request.model = read_model("llama3-8b", test_place);
  request.tokens = 1e12;
  request.systems = {read_system("dgx-h100", test_place)};
  request.gpus = {16, 32};
  request.most_batch = 256;
  request.fixed = {{"cp", {"1"}}, {"mbs", {"1"}}};
  const PurchaseNames names{"llama3-8b", "1T", {"dgx-h100"}, ""};
  const Purchase purchase = buy(request);
  const std::string page = purchase_report(purchase, request, names, {"orrery buy --model '<x>'"});
  EXPECT_THAT(page, HasSubstr("id=\"purchase-cost-chart\""));
  EXPECT_THAT(page, HasSubstr("id=\"purchase-days-chart\""));
  EXPECT_THAT(page, HasSubstr("<h2>The best plan of each</h2>"));
  EXPECT_THAT(page, HasSubstr("orrery buy --model '&lt;x&gt;'"));
  EXPECT_EQ(nlohmann::json::parse(result_of(page)),
            nlohmann::json::parse(purchase_json(purchase, request, names)));
  EXPECT_LT(page.size(), most_bytes_of_a_report);
}

}  // namespace
}  // namespace orrery::purchase_report_test
