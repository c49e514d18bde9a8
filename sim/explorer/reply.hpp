#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/explorer/replies.hpp"

namespace orrery {

/// Questions of a page.
enum class QuestionKind {
  catalog,
  answer,
  compare,
  changes,
  search,
  batches,
  sweep,
  report,
  trace,
  result,
  megatron,
  // Drawings are asked for when they are opened.
  memory,    ///< memory_view() in views.hpp
  cluster,   ///< cluster_view.hpp
  links,     ///< The links in a part of the step.
  roofline,  ///< orrery.roofline/1, as `orrery kernel step --json` prints it
  experts    ///< experts_view() in views.hpp
};
/// The kind with that name in addresses: "answer". Nothing: there is none.
std::optional<QuestionKind> question_kind(std::string_view name);
const char* media_type(QuestionKind kind);  ///< Type of its reply.
/// A newer question of a page makes an older one of it needless: an answer an answer, a search a
/// search, a drawing the same drawing, and an answer all drawings, which showed the answer before.
bool supersedes(QuestionKind newer, QuestionKind older);

/// Treatment of a question.
struct ReplyManner {
  /// The reply: all at once, as parts come, or lines of JSON as they come.
  enum class Parts { one, any, lines } parts = Parts::one;
  bool long_work = false;  ///< Has no time limit, and lets all others go first.
};
ReplyManner manner_of(QuestionKind kind);

/// Answers a question. `body` is a state (ExploredState::read); of `compare` {"from": state, "to":
/// state}; of `links` {"state": state, "from_ns": 0, "to_ns": 1000}; of `search` and `sweep` as
/// ExploredSearch and ExploredSweep read it; of `catalog` empty. `repair`: if the plan of an
/// `answer` cannot run, the nearest usual plan is answered (repaired()).
///
/// An answer is one line of JSON (orrery.explorer/1), followed, in a part of its own, by the
/// timeline (timeline_bytes.hpp) if the plan runs. A search, batches and a sweep are lines as they
/// come (replies.hpp). Everything else is one part. Errors of the request are replies of status
/// 400, of plans that cannot run 422 (an answer says it in "refused"): {"error": "..."}.
void reply(QuestionKind kind, const std::string& body, bool repair, WarmInputs& inputs,
           const SendPart& send);

}  // namespace orrery
