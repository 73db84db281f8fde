// Decoders and sequences of the C interface for Python. Calls run without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "python/extension/callbacks.hpp"
#include "python/extension/handles.hpp"
#include "python/extension/session.hpp"

namespace kiln::python {

using id_array = nanobind::ndarray<const std::int64_t, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
using sequences_handle = std::unique_ptr<kiln_sequences, closer<kiln_sequences_destroy>>;

class sequences {
 public:
  sequences(sequences_handle handle, std::int64_t vocabulary) : handle_(std::move(handle)), vocabulary_(vocabulary) {}

  // Returns the logits after the last ids, a numpy array [rows, vocabulary].
  nanobind::object append(const id_array& ids);
  // Returns an id for each row, a numpy array [rows].
  nanobind::object choose(const kiln_sampling& sampling);
  std::size_t rows() const;
  std::int64_t length() const;
  void rollback(std::int64_t count);
  void reset();
  sequences copy();
  void save(const std::string& path);
  void close();

 private:
  kiln_sequences* open() const;
  sequences_handle handle_;
  std::int64_t vocabulary_;
};

class decoder {
 public:
  decoder(session_choice choice, std::int64_t context, nanobind::object progress, nanobind::object warn);
  decoder(const decoder&) = delete;
  ~decoder() { close(); }

  std::int64_t vocabulary() const { return info_.vocabulary; }
  std::int64_t context() const { return info_.context; }
  const std::string& device() const { return choice_.device; }
  bool closed() const { return handle_ == nullptr; }
  sequences make();
  sequences load(const std::string& path);
  void close();

  callbacks& functions() { return callbacks_; }

 private:
  kiln_decoder* open() const;
  session_choice choice_;
  callbacks callbacks_;
  std::unique_ptr<kiln_decoder, closer<kiln_decoder_close>> handle_;
  kiln_decoder_info info_{};
};

// Adds the classes Decoder and Sequences to the extension module.
void bind_decoder(nanobind::module_& m);

}  // namespace kiln::python
