#pragma once
// The panel with the messages of the program, to read and to copy.

#include <memory>
#include <vector>

#include "app/base/message_log.h"
#include "app/panels/panel.h"

namespace canopy::app {

class LogPanel final : public Panel {
 public:
  explicit LogPanel(std::shared_ptr<MessageLog> log = MessageLog::of_process()) : log_(std::move(log)) {}

  const char* name() const override { return "Log"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_messages();

  std::shared_ptr<MessageLog> log_;
  uint64_t read_ = 0;  // MessageLog::count() when messages_ was read
  std::vector<MessageLog::Message> messages_;
};

}  // namespace canopy::app
