#include "runtime/gpu/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace kiln::gpu {

// Indexed by api.
struct api_row {
  std::string_view name, title, no_memory;
  std::vector<std::string> libraries;  // names for dlopen, newest interface first
  int least_version;
  attribute_numbers attributes;
};

namespace {

const api_row& row(api which) {
  static const std::array<api_row, 2> rows{{
      {"cuda", "CUDA driver", "", {"libcuda.so.1"}, 11030, {16, 115, 97}},
      // The numbers of hipDeviceAttribute_t are the same in HIP 5, 6 and 7.
      {"hip",
       "HIP",
       "",
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so.7",
        "/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.5", "libamdhip64.so"},
       0,
       {63, 88, 74}},
  }};
  return rows[static_cast<std::size_t>(which)];
}

// dlopen's message starts with the library's name, followed by the reason.
std::string not_opened() {
  const char* text = ::dlerror();
  std::string reason = text ? text : "cannot be opened";
  return reason.find("No such file") != std::string::npos ? "not found" : reason;
}

enum class need { required, optional };

// Resolves all functions. Returns the name of the first required function that the library lacks.
std::string resolve(api which, void* library, driver_functions& f) {
  std::string missing;
  auto get = [&](need n, auto& member, const char* symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(::dlsym(library, symbol));
    if (!member && n == need::required && missing.empty()) missing = symbol;
  };
  bool cuda = which == api::cuda;
#define KILN_GPU_RESOLVE(n, member, cuda_name, hip_name, parameters) \
  get(need::n, f.member, cuda ? #cuda_name : #hip_name);
  KILN_GPU_BOTH(KILN_GPU_RESOLVE)
#undef KILN_GPU_RESOLVE
#define KILN_GPU_RESOLVE(n, member, symbol, result, parameters) get(need::n, f.member, #symbol);
  if (cuda) {
    KILN_GPU_CUDA_ONLY(KILN_GPU_RESOLVE)
  } else {
    KILN_GPU_HIP_ONLY(KILN_GPU_RESOLVE)
  }
#undef KILN_GPU_RESOLVE
  return missing;
}

std::string version_text_of(api which, int version) {
  if (which == api::cuda) return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100) + "." +
         std::to_string(version % 100000);
}

}  // namespace

std::string_view name(api which) { return row(which).name; }

std::string gpu_driver::version_text() const { return version_text_of(which_, version_); }

const attribute_numbers& gpu_driver::attributes() const { return row(which_).attributes; }

std::string gpu_driver::error_name(int status) const {
  const char* text = nullptr;
  if (which_ == api::cuda) functions_.cuda_error_name(status, &text);
  else text = functions_.hip_error_name(status);
  return text && *text ? text : std::string(row(which_).title) + " error " + std::to_string(status);
}

// Opens one library and stores the outcome in `result`.
struct driver_opening {
  static std::shared_ptr<const gpu_driver> open(api which, const std::string& path, search_result& result) {
    const api_row& about = row(which);
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      result.outcome = not_opened();
      return nullptr;
    }
    driver_functions functions;
    if (std::string missing = resolve(which, library, functions); !missing.empty()) {
      result.outcome = "lacks " + missing + ": it is too old, or not a " + std::string(about.title);
      ::dlclose(library);
      return nullptr;
    }
    auto made = std::make_shared<gpu_driver>(which, functions, path);
    auto failed = [&](const char* what, int status) {
      if (status == status_ok) return false;
      result.outcome = std::string(what) + ": " + made->error_name(status);
      return true;
    };
    if (failed("initialization", functions.init(0))) return nullptr;
    if (failed("version", functions.driver_version(&made->version_))) return nullptr;
    if (made->version_ < about.least_version) {
      result.outcome = std::string(about.title) + " " + made->version_text() + " is older than " +
                       version_text_of(which, about.least_version) + ": update the driver";
      return nullptr;
    }
    if (failed("number of devices", functions.device_count(&made->devices_))) return nullptr;
    result.found = made->devices_ > 0;
    result.outcome = std::string(about.title) + " " + made->version_text() + ", " + std::to_string(made->devices_) +
                     (made->devices_ == 1 ? " device" : " devices");
    return made;
  }
};

driver_search find_driver(api which, const std::string& path) {
  driver_search search{which, nullptr, {}};
  std::vector<std::string> places = path.empty() ? row(which).libraries : std::vector{path};
  for (const std::string& place : places) {
    search_result& result = search.searched.emplace_back(search_result{place, false, {}});
    search.driver = driver_opening::open(which, place, result);
    if (search.driver) break;
  }
  return search;
}

std::string explain(const driver_search& search) {
  std::string text;
  for (const search_result& r : search.searched) {
    if (!text.empty()) text += "; ";
    text += r.library + ": " + r.outcome;
  }
  return text;
}

status_meaning meaning_of(int status) {
  struct meaning_row {
    int status;
    status_meaning meaning;
  };
  using enum error_kind;
  // The numbers of CUresult. Those that hipError_t shares have the same meaning.
  static constexpr meaning_row rows[] = {
      {2,
       {out_of_memory, false,
        "there is not enough device memory: use smaller dimensions, or free memory of the device"}},
      {3, {no_driver, false, "the driver is not initialized"}},
      {4, {device_lost, true, "the driver is shutting down"}},
      {46, {device_lost, true, "the device is used by another process or not available"}},
      {100, {no_device, false, "there is no such device"}},
      {101, {no_device, false, "there is no such device"}},
      {200, {compile_failed, false, "the driver refuses the module"}},
      {201, {device_lost, true, "the context is gone"}},
      {209, {compile_failed, false, "the module was made for another device: finalize the program for this one"}},
      {214, {device_lost, true, "an uncorrectable memory error"}},
      {218, {compile_failed, false, "the driver refuses the module's code"}},
      {220, {device_lost, true, "an uncorrectable error of a link between devices"}},
      {221, {compile_failed, false, "the driver's compiler is missing"}},
      {222, {compile_failed, false, "the module needs a newer driver"}},
      {300, {compile_failed, false, "the driver refuses the module's source"}},
      {400, {usage, false, "a stream or an event is of another device, or was destroyed"}},
      {500, {corrupted, false, "it is not there"}},
      {700, {internal, true, "a kernel accessed memory that is not its own"}},
      {701, {compile_failed, false, "a kernel needs more registers, threads or shared memory than there are"}},
      {702, {timed_out, true, "a kernel ran past the device's time limit"}},
      {709, {device_lost, true, "the context is gone"}},
      {710, {internal, true, "a kernel stopped itself"}},
      {714, {internal, true, "a kernel's stack is damaged"}},
      {715, {internal, true, "a kernel ran into an illegal instruction"}},
      {716, {internal, true, "a kernel accessed memory at a misaligned address"}},
      {717, {internal, true, "a kernel accessed memory of the wrong kind"}},
      {718, {internal, true, "a kernel jumped to an invalid address"}},
      {719, {internal, true, "a kernel failed"}},
      {802, {no_driver, false, "the system is not ready for the device"}},
      {803, {no_driver, false, "the driver's parts have different versions"}},
      {999, {device_lost, true, "the device is lost"}},
  };
  auto* found = std::ranges::find(rows, status, &meaning_row::status);
  return found == std::end(rows) ? status_meaning{} : found->meaning;
}

}  // namespace kiln::gpu
