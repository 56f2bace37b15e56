#include "engine/text/jinja/template.h"

#include "engine/base/error.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/parser.h"

namespace canopy::jinja {
namespace {

Error located(const std::string& name, int line, const char* message) {
  return bad_input(name + ", line " + std::to_string(line) + ": " + message);
}

}  // namespace

Template::Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::parse(std::string_view source, std::string name, const Limits& limits) {
  Template result;
  result.name_ = std::move(name);
  result.limits_ = limits;
  try {
    result.program_ = std::make_unique<const Program>(jinja::parse(source, limits));
  } catch (const SyntaxFailure& failure) {
    throw located(result.name_, failure.line(), failure.what());
  }
  return result;
}

std::vector<Segment> Template::render(const Dict& values, const std::tm& now) const {
  Interpreter interpreter(limits_, now, values, *program_);
  Text text;
  try {
    text = interpreter.render();
  } catch (const Failure& failure) {
    throw located(name_, interpreter.line(), failure.what());
  }
  std::vector<Segment> segments;
  for (size_t at = 0; at < text.size();) {
    const size_t size = text.run_length(at);
    segments.push_back({std::string(text.bytes().substr(at, size)), text.origin(at)});
    at += size;
  }
  return segments;
}

}  // namespace canopy::jinja
