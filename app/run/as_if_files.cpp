#include "app/run/as_if_files.h"

#include <system_error>

#include "app/run/what_if_answers.h"

namespace canopy::app {
namespace {

AsIfAnswer read_and_answer(const AsIfQuestion& question, const std::stop_token& stop) {
  AsIfAnswer answer{question.recording, {}, {}};
  try {
    answer.file = write_as_if(question.recording->reader(), *question.there);
  } catch (...) {
    answer.problem = as_error(std::current_exception()).what();
  }
  std::error_code ignored;
  if (stop.stop_requested()) std::filesystem::remove(answer.file, ignored);  // nobody takes it any more
  return answer;
}

}  // namespace

AsIfFiles::AsIfFiles() : answers_(read_and_answer, Waiting::is_answered) {}

AsIfFiles::~AsIfFiles() {
  take();
  std::error_code ignored;
  for (const std::filesystem::path& file : files_) std::filesystem::remove(file, ignored);
}

std::vector<AsIfAnswer> AsIfFiles::take() {
  std::vector<AsIfAnswer> answers = answers_.take();
  for (const AsIfAnswer& answer : answers) {
    if (!answer.file.empty()) files_.push_back(answer.file);
  }
  return answers;
}

}  // namespace canopy::app
