#include "sim/search/purchase_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/scenarios.hpp"

namespace orrery::purchase_text_test {
namespace {

using testing::HasSubstr;

PurchaseRequest small_request() {
  PurchaseRequest request;
  request.model = read_model("llama3-8b", test_place);
  request.tokens = 1e12;
  request.systems = {read_system("dgx-h100", test_place), read_system("l40s-pcie", test_place),
                     read_system("dgx-a100-superpod", test_place)};
  request.gpus = {16, 2048};
  request.most_batch = 256;
  request.fixed = {{"cp", {"1"}}, {"mbs", {"1"}}};
  return request;
}

const PurchaseNames names{"llama3-8b", "1T", {"dgx-h100", "l40s-pcie", "dgx-a100-superpod"}, ""};

TEST(PurchaseOutput, EveryLineOfCsvHasAsManyCells) {
  const PurchaseRequest request = small_request();
  std::istringstream csv{purchase_csv(buy(request), request)};
  std::string line;
  std::getline(csv, line);
  const auto cells = [](const std::string& of) {
    bool quoted = false;
    int commas = 0;
    for (const char c : of) {
      if (c == '"') quoted = !quoted;
      commas += c == ',' && !quoted;
    }
    return commas + 1;
  };
  const int columns = cells(line);
  int rows = 0;
  while (std::getline(csv, line)) {
    EXPECT_EQ(cells(line), columns) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 6);
}

TEST(PurchaseOutput, TextSaysWhatIsUnknownAndRefused) {
  const PurchaseRequest request = small_request();
  const std::string text = purchase_document(buy(request), request, names).text();
  EXPECT_THAT(text, HasSubstr("Not known of l40s: rent_usd_per_gpu_hour"));
  EXPECT_THAT(text, HasSubstr("dgx-a100-superpod, 2,048 GPUs: no plan divides"));
  EXPECT_THAT(text, HasSubstr("orrery estimate --model llama3-8b --system "));
  EXPECT_THAT(text, HasSubstr("Nothing fails in these days"));
}

// What is printed to be typed again has the same answer.
TEST(PurchaseOutput, CommandCarriesTheFailures) {
  PurchaseRequest request = small_request();
  request.gpus = {16};
  request.reliability = read_reliability("meta-llama3", test_place);
  PurchaseNames with = names;
  with.reliability = "meta-llama3";
  const PurchaseRow row = buy(request).rows.front();
  const std::string command = command_of(row, request, with);
  EXPECT_THAT(command, testing::StartsWith("orrery run --model llama3-8b --system dgx-h100 "));
  EXPECT_THAT(command, testing::EndsWith(" --tokens 1T --reliability meta-llama3"));
}

TEST(PurchaseOutput, SaysWhatCapitalBuys) {
  PurchaseRequest request = small_request();
  request.gpus = {16};
  request.capital_usd = 50e6;
  const Purchase purchase = buy(request);
  const std::string text = purchase_document(purchase, request, names).text();
  EXPECT_THAT(text, HasSubstr("in capital"));
  EXPECT_THAT(text, HasSubstr("Within $50.0 million to buy, the fastest is dgx-h100, 16 GPUs"));
  EXPECT_THAT(text, HasSubstr("Of dgx-h100, $50.0 million buys "));
  EXPECT_THAT(purchase_json(purchase, request, names), HasSubstr("\"in_capital\": \"surely\""));
}

TEST(PurchaseOutput, AFigureThatIsNotKnownHasAMark) {
  PurchaseRequest request = small_request();
  request.systems = {request.systems[1]};
  request.gpus = {16};
  const Purchase purchase = buy(request);
  EXPECT_THAT(purchase_document(purchase, request, {"llama3-8b", "1T", {"l40s-pcie"}, ""}).text(),
              HasSubstr("?"));
  EXPECT_THAT(purchase_json(purchase, request, {"llama3-8b", "1T", {"l40s-pcie"}, ""}),
              HasSubstr("\"rent_usd\": null"));
}

}  // namespace
}  // namespace orrery::purchase_text_test
