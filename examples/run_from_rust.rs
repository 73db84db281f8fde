// Runs a .kiln file on the host, with zeros as inputs, from Rust and without bindings that a generator made:
//     run_from_rust FILE
// Build: rustc -O run_from_rust.rs -L native=FOLDER_OF_THE_LIBRARY -l kiln_runtime
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::ptr::null_mut;

#[repr(C)]
struct TensorInfo {
    name: *const c_char,
    element: c_int,
    rank: usize,
    dims: *const i64,
    bytes: usize,
}

extern "C" {
    fn kiln_status_name(status: c_int) -> *const c_char;
    fn kiln_last_error() -> *const c_char;
    fn kiln_program_open(path: *const c_char, threads: c_uint, program: *mut *mut c_void) -> c_int;
    fn kiln_program_close(program: *mut c_void);
    fn kiln_program_input_count(program: *const c_void) -> usize;
    fn kiln_program_output_count(program: *const c_void) -> usize;
    fn kiln_program_input(program: *const c_void, index: usize, info: *mut TensorInfo) -> c_int;
    fn kiln_program_output(program: *const c_void, index: usize, info: *mut TensorInfo) -> c_int;
    fn kiln_context_create(program: *const c_void, context: *mut *mut c_void) -> c_int;
    fn kiln_context_destroy(context: *mut c_void);
    fn kiln_run(context: *mut c_void, inputs: *const *const c_void, outputs: *const *mut c_void) -> c_int;
}

const KILN_F32: c_int = 1;

fn text(from: *const c_char) -> String {
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

fn check(status: c_int) -> Result<(), String> {
    match status {
        0 => Ok(()),
        _ => Err(unsafe { format!("{}: {}", text(kiln_status_name(status)), text(kiln_last_error())) }),
    }
}

fn run(path: &str) -> Result<(), String> {
    let path = CString::new(path).map_err(|e| e.to_string())?;
    let (mut program, mut context) = (null_mut(), null_mut());
    unsafe {
        check(kiln_program_open(path.as_ptr(), 0, &mut program))?;
        check(kiln_context_create(program, &mut context))?;
        let mut info = TensorInfo { name: null_mut(), element: 0, rank: 0, dims: null_mut(), bytes: 0 };
        // Words of 8 bytes: aligned for every type.
        let (mut inputs, mut outputs) = (Vec::<Vec<u64>>::new(), Vec::<Vec<u64>>::new());
        for i in 0..kiln_program_input_count(program) {
            check(kiln_program_input(program, i, &mut info))?;
            inputs.push(vec![0; info.bytes / 8 + 1]);
        }
        for i in 0..kiln_program_output_count(program) {
            check(kiln_program_output(program, i, &mut info))?;
            outputs.push(vec![0; info.bytes / 8 + 1]);
        }
        let from: Vec<_> = inputs.iter().map(|v| v.as_ptr() as *const c_void).collect();
        let to: Vec<_> = outputs.iter_mut().map(|v| v.as_mut_ptr() as *mut c_void).collect();
        check(kiln_run(context, from.as_ptr(), to.as_ptr()))?;
        for (i, made) in outputs.iter().enumerate() {
            check(kiln_program_output(program, i, &mut info))?;
            print!("{} {} bytes", text(info.name), info.bytes);
            if info.element == KILN_F32 {
                for v in std::slice::from_raw_parts(made.as_ptr() as *const f32, (info.bytes / 4).min(4)) {
                    print!(" {v}");
                }
            }
            println!();
        }
        kiln_context_destroy(context);
        kiln_program_close(program);
    }
    Ok(())
}

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: run_from_rust FILE");
        std::process::exit(2)
    };
    if let Err(problem) = run(&path) {
        eprintln!("{problem}");
        std::process::exit(1)
    }
}
