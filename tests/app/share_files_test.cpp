// What the window's own thread does to share a live reply: nothing that grows with it.

#include "app/app.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/base/expect_error.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

/// A reply whose older trees were dropped, so that whoever reads the rounds notices.
ViewModel view_of_a_reply(uint32_t rounds) {
  constexpr uint64_t id = 2;
  ViewModel view;
  const auto log = std::make_shared<LiveLog>(1, RoundSpill("/proc/canopy-nowhere"));
  Generate request;
  request.reply_id = id;
  log->expect(request);
  TraceBuilder builder;
  builder.begin();
  for (uint32_t i = 0; i < rounds; ++i) {
    log->take(Event(RoundFinished{id, std::make_shared<const RoundRecord>(builder.tree(12)), 0, 0, {}, false}));
  }
  Message question, reply;
  question.id = 1;
  reply.id = id;
  reply.role = Role::assistant;
  reply.rounds = rounds;
  view.messages.append(question);
  view.messages.append(reply);
  view.rounds.live = log;
  view.rounds.log = log;
  view.rounds.playback.shown = rounds - 1;
  return view;
}

TEST(ShareFiles, RoundsOfALiveReplyAreReadByTheThread) {
  const ViewModel view = view_of_a_reply(40);
  for (const ShareKind kind : {ShareKind::page, ShareKind::animation}) {
    ShareJob::Make make;
    ASSERT_NO_THROW(make = make_of(view, kind));
    expect_error("The tree of pass 1 of this reply is no longer in memory", [&] { make({}); });
  }
}

}  // namespace
}  // namespace canopy::test
