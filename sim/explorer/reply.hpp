#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/explorer/replies.hpp"

namespace orrery {

/// What a page asks for.
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
  // Of drawings that are asked for when they are opened.
  memory,    ///< memory_view.hpp
  cluster,   ///< cluster_view.hpp
  links,     ///< The same of a part of the step.
  roofline,  ///< orrery.roofline/1, as `orrery kernel step --json` prints it
  experts    ///< experts_view.hpp
};
/// By its name in addresses: "answer". Nothing: no question has it.
std::optional<QuestionKind> question_kind(std::string_view name);
const char* media_type(QuestionKind kind);  ///< Of its reply.
/// Whether a newer question of a page makes an older one of it needless: an answer an answer, a
/// search a search, a drawing the same drawing, and an answer all drawings, which were of the
/// answer before.
bool supersedes(QuestionKind newer, QuestionKind older);

/// How a question is treated.
struct ReplyManner {
  /// Of its reply: all at once, as they come, or lines of JSON as they come.
  enum class Parts { one, any, lines } parts = Parts::one;
  bool long_work = false;  ///< It may take as long as it takes, and lets all others go first.
};
ReplyManner manner_of(QuestionKind kind);

/// Answers a question. `body` is a state (ExploredState::read); of `compare` {"from": state, "to":
/// state}; of `links` {"state": state, "from_ns": 0, "to_ns": 1000}; of `search` and `sweep` as
/// ExploredSearch and ExploredSweep read it; of `catalog` empty. `repair`: of `answer`, where the
/// plan cannot run, that of the nearest usual plan (repaired()).
///
/// An answer is one line of JSON (orrery.explorer/1), and behind it, in a part of its
/// own, the timeline (timeline_bytes.hpp) where the plan runs. A search, batches and a sweep are
/// lines as they come (search_reply.hpp, batches_reply.hpp, sweep_reply.hpp). Everything else is
/// one part. Errors of the asker are replies of status 400, of plans that cannot run 422 (an answer
/// says it in "refused"): {"error": "..."}.
void reply(QuestionKind kind, const std::string& body, bool repair, WarmInputs& inputs,
           const SendPart& send);

}  // namespace orrery
