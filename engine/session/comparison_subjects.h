#pragma once
// Who takes part in a comparison: the loaded model, and what is opened beside it for as long as that takes.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/client/comparison_client.h"
#include "engine/session/comparison_runner.h"
#include "engine/session/engine.h"

namespace canopy {

/// The model that is loaded.
struct LoadedSubject {
  const Engine* engine = nullptr;  // null: none
  std::shared_ptr<Device> device;
  LoadModel opened;  // what had opened it
};

struct SubjectCallbacks {
  std::function<void(const std::string& stage)> stage;
  std::stop_token stop;
};

class ComparisonSubjects {
 public:
  using OpenDevice = std::function<std::unique_ptr<Device>(const std::string& selector)>;
  using NameDevice = std::function<std::string(const std::string& selector)>;

  /// Adds the subjects and contestants of these columns to `sweep`, and opens what is not there yet. Throws unavailable
  /// where a column needs the loaded model and there is none; bad_input where a way needs a drafter and the subject has
  /// none; cancelled; and what Engine::open() throws, with the column's name in front.
  ComparisonSubjects(const LoadedSubject& loaded, const OpenDevice& open_device, const NameDevice& device_uuid,
                     double calibration_s, const std::vector<ComparisonColumn>& columns,
                     const SubjectCallbacks& callbacks, Sweep& sweep);

  /// By subject of the sweep.
  const std::vector<ComparisonWriter>& writers() const { return writers_; }

 private:
  /// What a subject was asked for as, to find it again.
  struct Wanted {
    std::string model, drafter, device, server;
    bool operator==(const Wanted&) const = default;
  };
  struct Opened {
    std::string selector;
    std::shared_ptr<Device> device;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<EndpointClient> server;
  };

  uint32_t subject_for(const ComparisonColumn& column, const SubjectCallbacks& callbacks, Sweep& sweep);
  SweepSubject open_server(const ComparisonColumn& column, ComparisonWriter& writer);
  SweepSubject open_engine(const Wanted& wanted, const SubjectCallbacks& callbacks, ComparisonWriter& writer);
  std::shared_ptr<Device> device_for(const std::string& selector);
  DeviceSensors* sensors_of(const Device& device);
  uint32_t target_of(const std::string& model);

  const LoadedSubject& loaded_;
  const OpenDevice& open_device_;
  const NameDevice& device_uuid_;
  double calibration_s_;
  uint32_t widest_;                  // rows of the widest pass of a column
  std::vector<Wanted> wanted_;       // by subject
  std::vector<std::string> models_;  // paths, by target
  std::vector<Opened> opened_;
  std::vector<std::pair<const Device*, std::unique_ptr<DeviceSensors>>> sensors_;
  std::vector<ComparisonWriter> writers_;  // by subject
};

/// What a sweep's file says of an engine.
SweepSubject describe_subject(const Engine& engine, const DeviceSensors* sensors);

}  // namespace canopy
