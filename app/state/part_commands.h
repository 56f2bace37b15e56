#pragma once
// Commands that change one part of the window's state, and what they ask for beside it; events that end what they
// began.

#include "app/state/view_model.h"

namespace canopy::app {

Effects on_calibration_command(ViewModel& view, const CalibrationCommand& command);
Effects on_recording_command(ViewModel& view, const RecordingCommand& command);
Effects on_report_command(ViewModel& view, const ReportCommand& command);
Effects on_comparison_command(ViewModel& view, const ComparisonCommand& command);
Effects on_verify_command(ViewModel& view, const VerifyCommand& command);
Effects on_share_command(ViewModel& view, const ShareCommand& command);
Effects on_rounds_command(ViewModel& view, const RoundsCommand& command);
Effects on_shell_command(ViewModel& view, const ShellCommand& command);
Effects on_what_if_command(ViewModel& view, const WhatIfCommand& command);

/// Tells what the check of a recording found: a note where it is as it should be, else a card that stays.
void tell_verified(ViewModel& view);
/// The drafts behind every token are there, or not. What was drafted before a cancellation is kept in the file.
void on_densified(ViewModel& view, const TraceDensified& e);

}  // namespace canopy::app
