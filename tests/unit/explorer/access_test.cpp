#include <gtest/gtest.h>

#include <set>

#include "sim/explorer/loopback_server.hpp"

namespace orrery::access_test {
namespace {

TEST(RandomToken, IsLongAndAnotherEachTime) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const std::string token = random_token();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), token.npos);
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 100u);
}

TEST(SameSecret, ComparesAllOfIt) {
  const std::string secret = random_token();
  EXPECT_TRUE(same_secret(secret, secret));
  EXPECT_FALSE(same_secret(secret, ""));
  EXPECT_FALSE(same_secret(secret, secret + "0"));
  for (std::size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(same_secret(secret, other)) << i;
  }
}

TEST(WhyForeign, LetsThisMachineIn) {
  EXPECT_EQ(why_foreign({"127.0.0.1:80", "", ""}, 80), "");
  EXPECT_EQ(why_foreign({"localhost:80", "http://localhost:80", "same-origin"}, 80), "");
  EXPECT_EQ(why_foreign({"127.0.0.1:80", "", "none"}, 80), "");
  for (const RequestOrigin& foreign :
       {RequestOrigin{"", "", ""}, RequestOrigin{"127.0.0.1", "", ""},
        RequestOrigin{"127.0.0.1:81", "", ""}, RequestOrigin{"a.example:80", "", ""},
        RequestOrigin{"127.0.0.1:80", "null", ""},
        RequestOrigin{"127.0.0.1:80", "http://a.example", ""},
        RequestOrigin{"127.0.0.1:80", "https://127.0.0.1:80", ""},
        RequestOrigin{"127.0.0.1:80", "", "cross-site"},
        RequestOrigin{"127.0.0.1:80", "", "same-site"}})
    EXPECT_NE(why_foreign(foreign, 80), "") << foreign.host << " " << foreign.origin;
}

}  // namespace
}  // namespace orrery::access_test
