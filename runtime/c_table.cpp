// The table of functions that kiln_api() returns. It only grows at its end.
#include <cstddef>

#include "runtime/kiln.h"

namespace {

constexpr kiln_api_table table{sizeof(kiln_api_table),
                               KILN_API_VERSION,
                               kiln_api_version,
                               kiln_status_name,
                               kiln_last_error,
                               kiln_program_open,
                               kiln_program_open_on,
                               kiln_program_open_with,
                               kiln_program_close,
                               kiln_load_compiler,
                               kiln_session_open,
                               kiln_session_close,
                               kiln_session_dim_count,
                               kiln_session_dim,
                               kiln_session_program,
                               kiln_session_program_for,
                               kiln_description_open,
                               kiln_description_close,
                               kiln_description_dim_count,
                               kiln_description_dim,
                               kiln_description_input_count,
                               kiln_description_output_count,
                               kiln_description_input,
                               kiln_description_output,
                               kiln_program_input_count,
                               kiln_program_output_count,
                               kiln_program_input,
                               kiln_program_output,
                               kiln_program_output_extent,
                               kiln_program_get_info,
                               kiln_program_get_tuning_info,
                               kiln_context_create,
                               kiln_context_create_with,
                               kiln_context_get_graph_info,
                               kiln_context_destroy,
                               kiln_run,
                               kiln_run_from_host,
                               kiln_run_on_stream,
                               kiln_decoder_open,
                               kiln_decoder_close,
                               kiln_decoder_get_info,
                               kiln_sequences_create,
                               kiln_sequences_destroy,
                               kiln_sequences_append,
                               kiln_sequences_get_length,
                               kiln_sequences_choose,
                               kiln_sequences_rollback,
                               kiln_sequences_reset,
                               kiln_sequences_copy,
                               kiln_sequences_save,
                               kiln_sequences_load,
                               kiln_description_has_weights,
                               kiln_device_count,
                               kiln_device_open,
                               kiln_device_close,
                               kiln_device_allocate,
                               kiln_device_free,
                               kiln_device_upload,
                               kiln_device_download,
                               kiln_device_copy,
                               kiln_context_get_graph_memory};

// The first and the last function of version 10, and the last ones of versions 11, 12 and 14. This fails when a
// function is inserted between them.
static_assert(offsetof(kiln_api_table, api_version) == 2 * sizeof(void*) &&
              offsetof(kiln_api_table, sequences_load) == (2 + 48) * sizeof(void*) &&
              offsetof(kiln_api_table, description_has_weights) == (2 + 49) * sizeof(void*) &&
              offsetof(kiln_api_table, device_copy) == (2 + 57) * sizeof(void*) &&
              offsetof(kiln_api_table, context_get_graph_memory) == (2 + 58) * sizeof(void*));

}  // namespace

extern "C" const kiln_api_table* kiln_api(int version) {
  return version > 0 && version <= KILN_API_VERSION ? &table : nullptr;
}
