fn main() {
    sandglass_build::user_program();
    sandglass_build::embed_program("runtime-test-component", "component", "TEST_COMPONENT");
    // The component is made of the runtime too.
    println!("cargo:rerun-if-changed=../runtime/src");
}
