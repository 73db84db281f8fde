// Sequences of ids that a language model continues, as the C interface sees them. libkiln.so implements them
// (generation/decoder_entry.cpp). Any thread may call any function; the calls of one decoder and its sequences wait for
// each other. A call that throws leaves the sequences as they were.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/model_source.hpp"

namespace kiln {

// A batch of sequences of one length. It keeps its decoder alive.
class text_sequences {
 public:
  virtual ~text_sequences() = default;
  // Appends ids [rows, count] and stores the logits [rows, vocabulary] after the last ones, unless it is null.
  virtual void append(std::size_t rows, std::size_t count, const std::int64_t* ids, float* logits) = 0;
  // Stores an id for each row, chosen from the logits of the last ids. Fields of `sampling` that are zero have
  // defaults.
  virtual void choose(const kiln_sampling& sampling, std::int64_t* ids) = 0;
  virtual std::size_t rows() const = 0;
  virtual std::int64_t length() const = 0;
  virtual void rollback(std::int64_t count) = 0;
  virtual void reset() = 0;
  virtual std::unique_ptr<text_sequences> copy() = 0;
  virtual std::vector<std::byte> save() = 0;
};

class text_decoder {
 public:
  virtual ~text_decoder() = default;
  virtual std::int64_t vocabulary() const = 0;
  virtual std::optional<std::int64_t> context() const = 0;
  virtual std::unique_ptr<text_sequences> make() = 0;
  virtual std::unique_ptr<text_sequences> load(std::span<const std::byte> saved) = 0;
};

// The table that libkiln.so exports beside compiler_entry, under the name decoder_entry_name.
struct decoder_entry {
  // `context`: most ids of a sequence; 0: as many as the model takes.
  std::shared_ptr<text_decoder> (*open)(const model_request& request, std::int64_t context) = nullptr;
};
inline constexpr const char* decoder_entry_name = "kiln_decoder_entry";
using decoder_entry_function = const decoder_entry* (*)();

}  // namespace kiln
