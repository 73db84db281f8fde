// Opens the file of a decoder: in the form that updates its caches in place, if the file has it (section `steps`) and
// kernels are to serve all lengths (specialization::off).
#pragma once

#include <filesystem>
#include <memory>

#include "session/session.hpp"

namespace kiln {

// Throws what read_steps and session() throw.
std::unique_ptr<session> open_decoder_session(const std::filesystem::path& file, session_options options);
// Makes a program of this form and the options fit for a session of a decoder: the caches may change, and on the host
// there is no output of the likeliest ids.
void prepare_steps(program& steps, session_options& options);

}  // namespace kiln
