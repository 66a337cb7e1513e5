fn main() {
    sandglass_build::user_program();
}
