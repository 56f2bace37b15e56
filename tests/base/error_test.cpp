#include "engine/base/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <system_error>

namespace canopy {
namespace {

template <class T>
Error error_of_thrown(const T& thrown) {
  return as_error(std::make_exception_ptr(thrown));
}

void expect_part(const Error& error, ErrorKind kind, const std::string& part) {
  EXPECT_EQ(error.kind(), kind);
  EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
}

TEST(Errors, WhateverIsThrownSaysWhatCouldNotBeHad) {
  expect_part(error_of_thrown(cancelled("stopped")), ErrorKind::cancelled, "stopped");
  expect_part(error_of_thrown(std::bad_alloc()), ErrorKind::out_of_memory, "memory");
  const auto refused = std::make_error_code(std::errc::resource_unavailable_try_again);
  const Error thread = error_of_thrown(std::system_error(refused));
  expect_part(thread, ErrorKind::out_of_memory, "A thread could not be started, which needs ");
  expect_part(thread, ErrorKind::out_of_memory, " MB of address space for its stack.");
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  expect_part(error_of_thrown(std::filesystem::filesystem_error("copy", "/a/b", full)), ErrorKind::bad_input,
              "The file /a/b cannot be used: No space left on device.");
  expect_part(error_of_thrown(std::runtime_error("odd")), ErrorKind::bad_input, "Unexpected: odd");
  expect_part(error_of_thrown(7), ErrorKind::bad_input, "no reason");
}

}  // namespace
}  // namespace canopy
