#include <memory>
#include <string>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "runtime/c_open.hpp"
#include "runtime/c_status.hpp"
#include "runtime/compiler_library.hpp"

struct kiln_decoder {
  std::shared_ptr<kiln::text_decoder> model;
};

struct kiln_sequences {
  std::unique_ptr<kiln::text_sequences> batch;
};

using kiln::c_interface::check;
using kiln::c_interface::complete;
using kiln::c_interface::fail;
using kiln::c_interface::guarded;

extern "C" {

kiln_status kiln_decoder_open(const char* path, const kiln_open_options* options, int64_t context,
                              kiln_decoder** decoder) {
  if (!decoder) return fail(KILN_USAGE, "the pointer for the decoder is null");
  *decoder = nullptr;
  if (!path) return fail(KILN_USAGE, "the path is null");
  if (context < 0) return fail(KILN_USAGE, "the context is negative");
  if (kiln_status wrong = check(options)) return wrong;
  const kiln_open_options chosen = complete(options);
  if (chosen.dim_count || chosen.tuning != KILN_TUNING_OFF || chosen.specialization == KILN_SPECIALIZE_EAGER)
    return fail(KILN_USAGE, "a decoder's kernels serve all lengths: leave out dims, tuning and eager specialization");
  return guarded([&] {
    const auto request = kiln::c_interface::request_of(path, chosen);
    *decoder = new kiln_decoder{kiln::load_decoder_entry().open(request, context)};
  });
}

void kiln_decoder_close(kiln_decoder* decoder) { delete decoder; }

kiln_status kiln_decoder_get_info(const kiln_decoder* decoder, kiln_decoder_info* info) {
  if (!decoder || !info) return fail(KILN_USAGE, "the decoder or the pointer for the result is null");
  *info = {decoder->model->vocabulary(), decoder->model->context().value_or(0)};
  return KILN_OK;
}

kiln_status kiln_sequences_create(kiln_decoder* decoder, kiln_sequences** sequences) {
  if (!decoder || !sequences) return fail(KILN_USAGE, "the decoder or the pointer for the sequences is null");
  *sequences = nullptr;
  return guarded([&] { *sequences = new kiln_sequences{decoder->model->make()}; });
}

void kiln_sequences_destroy(kiln_sequences* sequences) { delete sequences; }

kiln_status kiln_sequences_append(kiln_sequences* sequences, size_t rows, size_t count, const int64_t* ids,
                                  float* logits) {
  if (!sequences || !ids) return fail(KILN_USAGE, "the sequences or the ids are null");
  return guarded([&] { sequences->batch->append(rows, count, ids, logits); });
}

kiln_status kiln_sequences_choose(kiln_sequences* sequences, const kiln_sampling* sampling, int64_t* ids) {
  if (!sequences || !ids) return fail(KILN_USAGE, "the sequences or the pointer for the ids is null");
  if (sampling && sampling->size != sizeof(kiln_sampling))
    return fail(KILN_USAGE, "the size in the options is not that of kiln_sampling");
  return guarded([&] { sequences->batch->choose(sampling ? *sampling : kiln_sampling{}, ids); });
}

kiln_status kiln_sequences_get_length(const kiln_sequences* sequences, size_t* rows, int64_t* length) {
  if (!sequences) return fail(KILN_USAGE, "the sequences are null");
  if (rows) *rows = sequences->batch->rows();
  if (length) *length = sequences->batch->length();
  return KILN_OK;
}

kiln_status kiln_sequences_rollback(kiln_sequences* sequences, int64_t count) {
  if (!sequences) return fail(KILN_USAGE, "the sequences are null");
  return guarded([&] { sequences->batch->rollback(count); });
}

kiln_status kiln_sequences_reset(kiln_sequences* sequences) {
  if (!sequences) return fail(KILN_USAGE, "the sequences are null");
  return guarded([&] { sequences->batch->reset(); });
}

kiln_status kiln_sequences_copy(kiln_sequences* sequences, kiln_sequences** copy) {
  if (!sequences || !copy) return fail(KILN_USAGE, "the sequences or the pointer for the copy is null");
  *copy = nullptr;
  return guarded([&] { *copy = new kiln_sequences{sequences->batch->copy()}; });
}

kiln_status kiln_sequences_save(kiln_sequences* sequences, const char* path) {
  if (!sequences || !path) return fail(KILN_USAGE, "the sequences or the path is null");
  return guarded([&] {
    kiln::container::output_file file(path);
    file.write(sequences->batch->save());
    file.commit();
  });
}

kiln_status kiln_sequences_load(kiln_decoder* decoder, const char* path, kiln_sequences** sequences) {
  if (!decoder || !path || !sequences) return fail(KILN_USAGE, "the decoder, the path or the pointer is null");
  *sequences = nullptr;
  return guarded([&] {
    const auto saved = kiln::container::mapped_file::open(path);
    try {
      *sequences = new kiln_sequences{decoder->model->load(saved->bytes())};
    } catch (const kiln::error& e) {
      throw kiln::error(e.kind(), std::string(path) + ": " + e.what());
    }
  });
}

}  // extern "C"
