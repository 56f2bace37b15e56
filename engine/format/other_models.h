#pragma once
// Models that people have and that do not run here: what they are, and what to get instead.

#include <span>
#include <string>
#include <string_view>

namespace canopy {

struct OtherModel {
  /// What a model is for decides what is advised.
  enum class Kind { text, code, pictures, vectors, translation, recurrence, blanks, sound };

  std::string_view name;         // in GGUF: "mamba2"
  std::string_view class_start;  // of the class in config.json: "Mamba2For"; empty: none is known
  std::string_view models;       // "Mamba 2, Codestral Mamba"
  Kind kind = Kind::text;
};

/// Rising by name.
std::span<const OtherModel> other_models();

/// By an architecture's name in GGUF or a class in config.json; null for what is not known.
const OtherModel* find_other_model(std::string_view name_or_class);

/// What keeps models of this kind from running and what to get instead: one or two sentences.
std::string_view advice_on(OtherModel::Kind kind);

}  // namespace canopy
