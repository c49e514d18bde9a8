#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/explore/replies/asked_estimate.hpp"

namespace orrery {

/// What a page asks for.
enum class QuestionKind {
  catalog,
  answer,
  compare,
  changes,
  search,
  batches,
  report,
  trace,
  result,
  megatron
};
/// By its name in addresses: "answer". Nothing: no question has it.
std::optional<QuestionKind> question_kind(std::string_view name);
const char* media_type(QuestionKind kind);  ///< Of its reply.

/// How a question is treated.
struct ReplyManner {
  /// Of its reply: all at once, as they come, or lines of JSON as they come.
  enum class Parts { one, any, lines } parts = Parts::one;
  bool newest_alone = false;  ///< A newer one of the same page makes it needless.
  bool long_work = false;     ///< It may take as long as it takes, and lets all others go first.
};
ReplyManner manner_of(QuestionKind kind);

/// Answers a question. `body` is a state (ExploredState::read); of `compare` {"from": state, "to":
/// state}; of `catalog` empty. `repair`: of `answer`, where the plan cannot run, that of the
/// nearest usual plan (repaired()).
///
/// An answer is one line of JSON (docs/EXPLORER.md has the keys), and behind it, in a part of its
/// own, the timeline (timeline_bytes.hpp) where the plan runs. A search and batches are lines as
/// they come (search_reply.hpp, batches_reply.hpp). Everything else is one part. Errors of the
/// asker are replies of status 400, of plans that cannot run 422 (an answer says it in
/// "refused"): {"error": "..."}.
void reply(QuestionKind kind, const std::string& body, bool repair, WarmInputs& inputs,
           const SendPart& send);

}  // namespace orrery
