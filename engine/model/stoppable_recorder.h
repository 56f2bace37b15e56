#pragma once
// Recording a pass takes seconds where its kernels must be compiled and measured first: this ends it between two ops.

#include <functional>
#include <memory>

#include "engine/compute/device.h"

namespace canopy {

/// Hands every op to another recorder while keep_going says yes; then none any more.
class StoppableRecorder final : public Recorder {
 public:
  /// Both must outlive it. An empty function always says yes.
  StoppableRecorder(Recorder& inner, const std::function<bool()>& keep_going)
      : inner_(inner), keep_going_(keep_going) {}

  /// Whether ops were left out: what was recorded is of no use then.
  bool stopped() const { return stopped_; }

  void embed(const EmbedArgs& args) override { forward(&Recorder::embed, args); }
  void linear(const LinearArgs& args) override { forward(&Recorder::linear, args); }
  void linear_add(const LinearAddArgs& args) override { forward(&Recorder::linear_add, args); }
  void linear_swiglu(const LinearSwigluArgs& args) override { forward(&Recorder::linear_swiglu, args); }
  void rope_store(const RopeStoreArgs& args) override { forward(&Recorder::rope_store, args); }
  void project_heads(const ProjectHeadsArgs& args) override { forward(&Recorder::project_heads, args); }
  void attention(const AttentionArgs& args) override { forward(&Recorder::attention, args); }
  void select(const SelectArgs& args) override { forward(&Recorder::select, args); }
  void argmax(const ArgmaxArgs& args) override { forward(&Recorder::argmax, args); }
  void top_k(const TopKArgs& args) override { forward(&Recorder::top_k, args); }
  void pick(const PickArgs& args) override { forward(&Recorder::pick, args); }
  void copy_rows(const CopyRowsArgs& args) override { forward(&Recorder::copy_rows, args); }
  void norm_rows(const NormRowsArgs& args) override { forward(&Recorder::norm_rows, args); }
  void kv_move(const KvMoveArgs& args) override { forward(&Recorder::kv_move, args); }

  /// Null once stopped.
  std::unique_ptr<Commands> finish() override { return stopped_ ? nullptr : inner_.finish(); }

 private:
  template <class Args>
  void forward(void (Recorder::*op)(const Args&), const Args& args) {
    stopped_ = stopped_ || (keep_going_ && !keep_going_());
    if (!stopped_) (inner_.*op)(args);
  }

  Recorder& inner_;
  const std::function<bool()>& keep_going_;
  bool stopped_ = false;
};

}  // namespace canopy
