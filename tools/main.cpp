// The `kiln` program: a table of commands, one error handler.
#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <system_error>

#include "ir/error.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/compile_worker.hpp"
#include "jit/deadline.hpp"
#include "tools/command.hpp"
#include "tools/farm_child.hpp"
#include "tools/process_limits.hpp"
#include "tools/terminal.hpp"
#include "tools/usage_errors.hpp"

namespace {

using namespace kiln::tools;
using kiln::error_kind;

constexpr std::array commands{
    command{"compile", "Compile an ONNX model into one portable .kiln file; needs no device",
            "kiln compile resnet50.onnx -o resnet50.kiln", stopping::limited, false, declare_compile},
    command{"refit", "Give weights to a file that was compiled without them",
            "kiln refit plan.kiln --weights retrained.onnx -o model.kiln", stopping::limited, false, declare_refit},
    command{"run", "Finalize what is missing for this device, cache it, and run once",
            "kiln run resnet50.kiln --output-dir out", stopping::limited, true, declare_run},
    command{"perf", "Measure load, finalize and run times", "kiln perf resnet50.kiln -n 100 --json", stopping::limited,
            true, declare_perf},
    command{"generate", "Continue prompts with a language model",
            "kiln generate model.kiln --prompt-ids prompt.npy --max-new-tokens 64", stopping::limited, true,
            declare_generate},
    command{"verify", "Compile, run and compare with the built-in reference", "kiln verify resnet50.onnx",
            stopping::limited, true, declare_verify},
    command{"inspect", "Show what is inside a .kiln file", "kiln inspect resnet50.kiln", stopping::at_once, false,
            declare_inspect},
    command{"diff", "Compare what is inside two .kiln files", "kiln diff before.kiln after.kiln", stopping::at_once,
            false, declare_diff},
    command{"finalize", "Make native objects for a target that need not be here",
            "kiln finalize resnet50.kiln --target x86-64-v4 -o objects", stopping::limited, true, declare_finalize},
    command{"warm", "Fill a cache, an archive or the files themselves for targets that need not be here",
            "kiln warm resnet50.kiln bert.kiln --target x86-64-v4 --target gfx942 --archive fleet.tar.zst",
            stopping::by_itself, true, declare_warm},
    command{"tune", "Find the fastest configurations of a model's kernels on a device, and keep them",
            "kiln tune resnet50.kiln --device host --budget 60s", stopping::at_once, true, declare_tune},
    command{"cache", "Look after the kernel cache", "kiln cache stats", stopping::at_once, false, declare_cache},
    command{"farm", "The build farm: submit models to any number of workers over Redis",
            "kiln farm submit *.onnx --wait -o compiled", stopping::by_itself, false, declare_farm},
    command{"sign", "Sign files, archives and tuning records, and the native code in them",
            "kiln sign resnet50.kiln fleet.tar.zst --key farm.key", stopping::at_once, false, declare_sign},
    command{"verify-signature", "Say who has signed a file, and fail unless that key is trusted",
            "kiln verify-signature resnet50.kiln --trust fleet.root", stopping::at_once, false,
            declare_verify_signature},
    command{"trust", "Look after a root of trust: the keys that may sign for a fleet", "kiln trust update fleet.root",
            stopping::at_once, false, declare_trust},
    command{"devices", "Show the devices of this machine", "kiln devices", stopping::at_once, false, declare_devices},
    command{"targets", "Show what can be targeted", "kiln targets", stopping::at_once, false, declare_targets},
    command{"hip", "Compile HIP C++ kernels into portable SPIR-V", "kiln hip relu6.hip -o relu6.spv", stopping::at_once,
            false, declare_hip},
    command{"ops", "Show the ONNX operators that are supported", "kiln ops", stopping::at_once, false, declare_ops},
    command{"completion", "Print completions of commands and options for a shell", "source <(kiln completion bash)",
            stopping::at_once, false, declare_completion},
    command{"man-pages", "Write the manual pages of all commands", "kiln man-pages man1", stopping::at_once, false,
            declare_man_pages},
};

// Errors are one line on standard error. Where the limits of the process have told why it ends, they end it.
int report(std::string_view kind, std::string_view message, int code) {
  if (!claim_report())
    for (;;) ::pause();
  write_report(kind, message);
  return code;
}

// Where a standard stream is closed, the next file that is opened would take its place. What is written to these fails.
void occupy_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
}

// `code`, unless what was printed did not arrive.
int after_printing(int code) {
  const bool arrived = std::fflush(stdout) == 0 && !std::ferror(stdout);
  return arrived || code != 0 ? code : report("io", "standard output cannot be written", 3);
}

process_limits::ending ending_of(error_kind kind, std::string message) {
  return {std::string(name(kind)), std::move(message), exit_code(kind)};
}

// The exit code of `work`, whose errors are reported. After a request to stop, whatever it fails with is a consequence
// of that.
template <class Work>
int outcome_of(Work work, const limit_options& limits) {
  process_limits::ending end;
  try {
    return work();
  } catch (const kiln::error& e) {
    end = ending_of(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    end = ending_of(error_kind::out_of_memory, "memory: is used up; use smaller dimensions, or a machine with more");
  } catch (const std::filesystem::filesystem_error& e) {
    end = ending_of(error_kind::io, e.what());
  } catch (const std::system_error& e) {
    end = e.code() == std::errc::resource_unavailable_try_again
              ? ending_of(error_kind::out_of_memory,
                          "threads: the system starts no more; ask for fewer with --threads, or raise its limits")
              : ending_of(error_kind::internal, e.what());
  } catch (const std::exception& e) {
    end = ending_of(error_kind::internal, e.what());
  }
  end = process_limits::describe_stop(limits, std::move(end));
  return end.kind == "internal" && std::ferror(stdout)
             ? 0
             : report(end.kind, end.message, end.code);  // after_printing() says what is wrong with standard output
}

int run(int argc, char** argv) {
  CLI::App app{
      "Kiln compiles a neural network once, into one portable file, and finishes it on the machine that opens it."};
  app.require_subcommand(1);
  app.set_version_flag("--version", [] { return kiln::compiler_version(); });
  output_options output;
  limit_options limits;
  const command* named = nullptr;
  action chosen;
  for (const command& c : commands) {
    CLI::App* sub = app.add_subcommand(c.name, c.summary);
    sub->footer(fmt::format("Example:\n  {}", c.example));
    sub->add_flag("--json", output.json, "One JSON document on standard output, nothing else there");
    sub->add_flag("--quiet", output.quiet, "Print errors only");
    sub->add_flag("--verbose", output.verbose, "Print more detail to standard error");
    if (c.stopping == stopping::limited) add_limit_options(*sub, limits);
    action act = c.declare(*sub);
    sub->final_callback([&, act] {
      chosen = act;
      named = &c;
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const std::span words(argv + 1, static_cast<std::size_t>(std::max(argc - 1, 0)));
    const std::string text = describe_usage_error(app, {words.data(), words.size()}, e);
    return report("usage", fmt::format("{}; see --help", text), 2);
  }
  start_log(output.verbose, output.quiet);
  std::optional<process_limits> limited;
  if (named->stopping != stopping::by_itself) process_limits::limit_memory(limits);
  if (named->compiles_kernels)
    kiln::fork_compile_workers();  // before there are threads; the limit on memory holds for them too
  if (named->stopping != stopping::by_itself) limited.emplace(limits);
  return outcome_of([&] { return chosen(output); }, limits);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view(kiln::compile_worker_argument)) return kiln::run_compile_worker();
  if (argc == 2 && argv[1] == std::string_view(farm_child_argument)) return run_farm_child();
  occupy_standard_streams();
  process_limits::report_exhausted_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails, and what was begun is removed
  int code = outcome_of([&] { return run(argc, argv); }, {});
  code = after_printing(code);
  if (kiln::abandoned_calls() == 0) return code;
  std::fflush(nullptr);
  std::_Exit(code);  // a compile that ran past its limit is still running on its thread
}
