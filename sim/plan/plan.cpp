#include "sim/plan/plan.hpp"

namespace orrery {

const std::vector<std::string>& context_exchange_names() {
  static const std::vector<std::string> names{"p2p", "all_gather", "a2a"};
  return names;
}
const std::string& name(ContextExchange exchange) {
  return context_exchange_names()[static_cast<std::size_t>(exchange)];
}

}  // namespace orrery
