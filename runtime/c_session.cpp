#include <string>
#include <vector>

#include "ir/error.hpp"
#include "runtime/c_api.hpp"
#include "runtime/c_open.hpp"
#include "runtime/c_status.hpp"

using kiln::c_interface::check;
using kiln::c_interface::complete;
using kiln::c_interface::fail;
using kiln::c_interface::guarded;

extern "C" {

kiln_status kiln_session_open(const char* path, const kiln_open_options* options, kiln_session** session) {
  if (!session) return fail(KILN_USAGE, "the pointer for the session is null");
  *session = nullptr;
  if (!path) return fail(KILN_USAGE, "the path is null");
  if (kiln_status wrong = check(options)) return wrong;
  const kiln_open_options chosen = complete(options);
  if (chosen.dim_count)
    return fail(KILN_USAGE, "dims: a session takes them with each program; give them to kiln_session_program()");
  return guarded([&] {
    auto [described, source] = kiln::c_interface::open_file(path, chosen);
    *session = new kiln_session{std::move(source), std::move(described)};
  });
}

void kiln_session_close(kiln_session* session) { delete session; }

size_t kiln_session_dim_count(const kiln_session* session) { return session ? session->source->symbols().size() : 0; }

kiln_status kiln_session_dim(const kiln_session* session, size_t index, kiln_dim_info* info) {
  if (!session || !info) return fail(KILN_USAGE, "the session or the pointer for the result is null");
  return kiln::c_interface::describe(session->source->symbols(), index, info);
}

kiln_status kiln_session_program(kiln_session* session, const kiln_dim* dims, size_t count, kiln_program** program) {
  if (!session || !program) return fail(KILN_USAGE, "the session or the pointer for the program is null");
  *program = nullptr;
  return guarded([&] {
    auto model = session->source->at(kiln::c_interface::sizes_of(dims, count));
    *program = new kiln_program{session->source, std::move(model)};
  });
}

kiln_status kiln_session_program_for(kiln_session* session, const kiln_given_input* inputs, size_t input_count,
                                     const kiln_dim* dims, size_t dim_count, kiln_program** program) {
  if (!session || !program) return fail(KILN_USAGE, "the session or the pointer for the program is null");
  *program = nullptr;
  if (!inputs && input_count) return fail(KILN_USAGE, "the list of inputs is null");
  return guarded([&] {
    std::vector<kiln::given_input> given;
    for (const kiln_given_input& i : std::span(inputs, input_count)) {
      if (!i.dims && i.rank) throw kiln::error(kiln::error_kind::usage, "the dims of an input are null");
      given.push_back({{i.dims, i.dims + i.rank}, i.data});
    }
    auto sizes = sizes_of_inputs(session->described, given, kiln::c_interface::sizes_of(dims, dim_count));
    session->source->add_data_sizes(sizes, literals_of(session->described, given));
    auto model = session->source->at(sizes);
    *program = new kiln_program{session->source, std::move(model)};
  });
}

}  // extern "C"
