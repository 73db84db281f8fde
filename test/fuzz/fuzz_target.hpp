// What a fuzz target defines, and what the targets share. A target reads bytes as Kiln reads a file or a message. It
// may refuse them with a typed error; everything else (a signal, a sanitizer's report, error{internal}, another
// exception, a failed `require`) ends the process, which is what a fuzzer looks for.
//
// With the preset `fuzz` libFuzzer drives a target; else replay.cpp does, over the corpus and mutants of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::fuzzing {

// Each target defines this. Errors that the reader throws leave it.
void read_input(std::span<const std::byte> input);

// Aborts with the text: the reader broke a promise.
void require(bool holds, const char* what);

std::string_view as_text(std::span<const std::byte> bytes);

// A file in memory with these bytes, valid until the next call.
std::filesystem::path as_file(std::span<const std::byte> bytes);

// Bytes at an address that is a multiple of 16, as those of a section are.
std::vector<std::byte> aligned_copy(std::span<const std::byte> bytes);

}  // namespace kiln::fuzzing
